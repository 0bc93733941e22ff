import Foundation
import Glibc

/// A process of a bench: broker or controller. Its owner ends it.
final class Child: Sendable {
    private let pid: pid_t
    private let name: String
    private let log: String

    /// Starts `program`; all it writes goes to a file in `folder`.
    init(_ program: String, _ arguments: [String], in folder: String) throws {
        let name = URL(fileURLWithPath: program).lastPathComponent
        self.name = name
        log = "\(folder)/\(name).log"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let status = posix_spawn(&pid, program, &actions, &attributes, &words, environ)
        guard status == 0 else {
            throw LoadError("\(program) could not be started: \(String(cString: strerror(status)))")
        }
        self.pid = pid
    }

    /// Throws, with the end of its log, when it has ended by itself.
    func check() throws {
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return }
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        throw LoadError("\(name) ended early:\n\(text.suffix(2_000))")
    }

    /// Asks it to end, insists after five seconds, and waits. Again without effect.
    func end() async {
        for attempt in 0..<1_000 {
            if attempt == 0 { kill(pid, SIGTERM) }
            if attempt == 500 { kill(pid, SIGKILL) }
            var status: Int32 = 0
            if waitpid(pid, &status, WNOHANG) != 0 { return }
            usleep(10_000)  // Also in a cancelled task, where a task's sleep returns at once.
        }
    }

    /// Processor time of the process so far, in seconds.
    var processorTime: Double {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return 0 }
        let fields = text[end...].split(separator: " ")
        guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else { return 0 }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The path of a program: beside this one, on the search path, or among the system's daemons.
    static func path(of name: String) throws -> String {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        for folder in [own] + path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin"] {
            let candidate = "\(folder)/\(name)"
            if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
        }
        throw LoadError("\(name) was found neither beside fleet-sim nor on the search path")
    }
}
