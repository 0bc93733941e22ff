import Glibc

/// Sets and dictionaries have another order in each process: a seed's story is to be the same in all, byte for byte.
enum FixedHashes {
    private static let setting = "SWIFT_DETERMINISTIC_HASHING"

    /// Begins this process anew with the setting of Swift's for that. Returns where it is made already, or cannot be.
    static func begin() {
        guard getenv(setting) == nil else { return }
        setenv(setting, "1", 1)
        // The thread that this runs on may have signals blocked, which the new process is to hear.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
    }
}
