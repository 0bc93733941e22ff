import Foundation
import Glibc
import Synchronization

/// A process of a bench or of chaos: broker, controller, agent, app or fleetctl. Its owner ends it.
final class Child: Sendable {
    enum Ending: Hashable, Sendable, CustomStringConvertible {
        case exited(Int32)
        case signalled(Int32)

        var description: String {
            switch self {
            case .exited(let status): "status \(status)"
            case .signalled(let number): "signal \(number) (\(String(cString: strsignal(number))))"
            }
        }

        /// Ended by a fault of its own program: a trap, an abort, a bad access.
        var isTrap: Bool {
            guard case .signalled(let number) = self else { return false }
            return [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS].contains(number)
        }
    }

    /// The files that a program's streams are appended to.
    struct Streams {
        let output: String
        /// With the output, if absent.
        var errors: String?
        /// Whether ``send(line:)`` reaches it; else its input is empty.
        var takesInput = false
        /// Whether its output is read at ``Child/output`` instead.
        var isRead = false
    }

    let pid: pid_t
    private let name: String
    private let log: String
    private let input: Int32?
    /// Where its output is read, which does not wait.
    let output: Int32?
    private let state = Mutex<Ending?>(nil)

    /// Starts `program`; all it writes goes to a file in `folder`, unless it is spoken to: then its errors alone.
    convenience init(
        _ program: String, _ arguments: [String], in folder: String, isSpokenTo: Bool = false,
        environment: [String: String] = [:]
    ) throws {
        let log = "\(folder)/\(URL(fileURLWithPath: program).lastPathComponent).log"
        let streams = Streams(output: log, errors: isSpokenTo ? log : nil, takesInput: isSpokenTo, isRead: isSpokenTo)
        try self.init(program, arguments, streams, environment: environment)
    }

    /// Starts `program` with no signal blocked or handled otherwise than by default; SIGXFSZ alone stays as it is here. It is
    /// killed when this process is, if it has its mark.
    init(
        _ program: String, _ arguments: [String], _ streams: Streams, environment: [String: String] = [:],
        isMarked: Bool = true
    ) throws {
        if isMarked { Reaper.watch() }
        name = URL(fileURLWithPath: program).lastPathComponent
        log = streams.errors ?? streams.output
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var pipe: [Int32] = [-1, -1]
        if streams.takesInput {
            guard Self.private({ Glibc.pipe(&pipe) == 0 ? pipe : [] }).count == 2 else {
                throw LoadError("no pipe for \(program): \(String(cString: strerror(errno)))")
            }
            posix_spawn_file_actions_adddup2(&actions, pipe[0], 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        defer { if pipe[0] >= 0 { close(pipe[0]) } }
        let flags = O_WRONLY | O_CREAT | O_APPEND
        var answers: [Int32] = [-1, -1]
        if streams.isRead {
            guard Self.private({ Glibc.pipe(&answers) == 0 ? answers : [] }).count == 2 else {
                if pipe[1] >= 0 { close(pipe[1]) }
                throw LoadError("no pipe for \(program): \(String(cString: strerror(errno)))")
            }
            posix_spawn_file_actions_adddup2(&actions, answers[1], 1)
        } else {
            posix_spawn_file_actions_addopen(&actions, 1, streams.output, flags, 0o600)
        }
        defer { if answers[1] >= 0 { close(answers[1]) } }
        if let errors = streams.errors {
            posix_spawn_file_actions_addopen(&actions, 2, errors, flags, 0o600)
        } else {
            posix_spawn_file_actions_adddup2(&actions, 1, 2)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        sigdelset(&all, SIGXFSZ)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if isMarked { variables[Reaper.mark.name] = Reaper.mark.value }
        var settings: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for setting in settings { free(setting) } }
        var pid: pid_t = 0
        let status = Self.starting.withLock { _ in posix_spawn(&pid, program, &actions, &attributes, &words, &settings)
        }
        if status == 0, streams.takesInput {
            input = pipe[1]
            _ = fcntl(pipe[1], F_SETFL, O_NONBLOCK)
        } else {
            input = nil
            if pipe[1] >= 0 { close(pipe[1]) }
        }
        if status == 0, streams.isRead {
            output = answers[0]
            _ = fcntl(answers[0], F_SETFL, O_NONBLOCK)
        } else {
            output = nil
            if answers[0] >= 0 { close(answers[0]) }
        }
        self.pid = pid
        guard status == 0 else {
            throw LoadError("\(program) could not be started: \(String(cString: strerror(status)))")
        }
    }

    deinit {
        if let input { close(input) }
        if let output { close(output) }
    }

    /// How it has ended, if it has.
    var ending: Ending? {
        state.withLock { state in
            if state != nil { return state }
            var status: Int32 = 0
            guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
            state = status & 0x7F == 0 ? .exited((status >> 8) & 0xFF) : .signalled(status & 0x7F)
            return state
        }
    }

    /// Throws, with the end of its log, when it has ended by itself.
    func check() throws {
        guard ending != nil else { return }
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        throw LoadError("\(name) ended early:\n\(text.suffix(2_000))")
    }

    /// Sends a signal, unless it has ended: then its number may be another process's by now.
    func signal(_ number: Int32) {
        if ending == nil { kill(pid, number) }
    }

    /// Writes a line to its input, unless it does not read.
    func send(line: String) {
        guard let input else { return }
        let bytes = Array((line + "\n").utf8)
        _ = write(input, bytes, bytes.count)
    }

    /// Lets no file of the process grow any more, or lifts that: as on a full disk, a write fails. False when this machine
    /// has no `prlimit`.
    @discardableResult
    func limitFiles(_ isFull: Bool, log: String) throws -> Bool {
        guard ending == nil else { return true }
        guard let program = try? Self.path(of: "prlimit") else { return false }
        let limit = isFull ? "0:unlimited" : "unlimited:unlimited"
        let child = try Child(program, ["--pid", "\(pid)", "--fsize=\(limit)"], Streams(output: log))
        while child.ending == nil { usleep(500) }
        return child.ending == .exited(0) || ending != nil
    }

    /// Held while a process starts: it would inherit what is open and not yet marked as private.
    private static let starting = Mutex(())

    /// Opens what a C function opens without marking it, and has it closed in every program that is started.
    static func `private`(_ open: () -> [Int32]) -> [Int32] {
        starting.withLock { _ in
            let descriptors = open().filter { $0 >= 0 }
            for descriptor in descriptors { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            return descriptors
        }
    }

    /// Asks it to end, insists after five seconds, and waits. Again without effect.
    func end() async {
        for attempt in 0..<1_000 {
            if ending != nil { return }
            if attempt == 0 {
                kill(pid, SIGTERM)
                kill(pid, SIGCONT)
            }
            if attempt == 500 { kill(pid, SIGKILL) }
            usleep(10_000)  // Also in a cancelled task, where a task's sleep returns at once.
        }
    }

    /// Ends it as a crash would, and waits.
    func crash() async {
        signal(SIGKILL)
        await end()
    }

    /// Waits for its end, which is near.
    func finish(within patience: Duration) throws -> Ending {
        let deadline = Clock.now() + UInt64(patience.nanoseconds)
        while true {
            if let ending { return ending }
            guard Clock.now() < deadline else { throw LoadError("\(name) did not end within \(patience)") }
            usleep(200)
        }
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
