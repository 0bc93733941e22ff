package import Foundation
internal import Glibc
internal import Synchronization

/// A child process of a test: its output by lines, its end, and the signals to disturb it with. It dies with the tests.
package final class ManagedProcess: Sendable {
    private struct State {
        var status: Int32?
        var waiting: [CheckedContinuation<Int32, Never>] = []
        var errors = ""
    }

    /// What it prints, by lines, from the start; for one reader.
    package let lines: AsyncStream<String>
    package let pid: Int32
    private let name: String
    private let state: Shared
    private let input: FileHandle
    /// Ends with standard error.
    private let errorsEnd: AsyncStream<Never>

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    /// Starts `executable`; what it writes to standard error is kept, and shown in failures.
    package static func start(
        _ executable: URL, _ arguments: [String] = [], environment: [String: String] = [:], in folder: URL? = nil
    ) async throws -> ManagedProcess {
        let started = Mutex<ManagedProcess?>(nil)
        try await Spawner.shared.run {
            let process = try ManagedProcess(executable, arguments, environment, folder)
            started.withLock { $0 = process }
        }
        guard let process = started.withLock({ $0 }) else { throw TestFailure("\(executable.path) did not start") }
        return process
    }

    private init(_ executable: URL, _ arguments: [String], _ environment: [String: String], _ folder: URL?) throws {
        let (input, output, errors) = (try Pipe(), try Pipe(), try Pipe())
        let words =
            ["/usr/bin/env", "-C", folder?.path ?? ".", "setpriv", "--pdeathsig", "KILL", "--", executable.path]
            + arguments
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        pid = try Self.spawn(words, variables, [input.reading, output.writing, errors.writing])
        for descriptor in [input.reading, output.writing, errors.writing] { close(descriptor) }
        self.input = FileHandle(fileDescriptor: input.writing, closeOnDealloc: true)
        name = executable.lastPathComponent
        let shared = Shared()
        state = shared
        let (lines, line) = AsyncStream.makeStream(of: String.self)
        self.lines = lines
        Self.read(output.reading) { text in
            line.yield(text)
        } atEnd: {
            line.finish()
        }
        let (errorsEnd, end) = AsyncStream.makeStream(of: Never.self)
        self.errorsEnd = errorsEnd
        Self.read(errors.reading) { text in
            shared.state.withLock { $0.errors += text + "\n" }
        } atEnd: {
            end.finish()
        }
        let pid = pid
        Thread.detachNewThread {
            var raw: Int32 = 0
            while waitpid(pid, &raw, 0) < 0, errno == EINTR {}
            let status = raw & 0x7F == 0 ? raw >> 8 & 0xFF : -(raw & 0x7F)
            let waiting = shared.state.withLock { state in
                state.status = status
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume(returning: status) }
        }
    }

    /// Both ends of a pipe that no other child inherits.
    private struct Pipe {
        let reading: Int32
        let writing: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw TestFailure("no pipe could be made: errno \(errno)") }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            (reading, writing) = (ends[0], ends[1])
        }
    }

    /// Starts a child with these descriptors as its 0, 1 and 2, no other, and signals as they are by default.
    private static func spawn(
        _ words: [String], _ variables: [String], _ descriptors: [Int32]
    ) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (target, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(target))
        }
        for descriptor in 3..<512 { posix_spawn_file_actions_addclose(&actions, Int32(descriptor)) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var argumentPointers = words.map { strdup($0) } + [nil]
        var variablePointers = variables.map { strdup($0) } + [nil]
        defer { for pointer in argumentPointers + variablePointers { free(pointer) } }
        var pid: pid_t = 0
        let status = posix_spawnp(&pid, words[0], &actions, &attributes, &argumentPointers, &variablePointers)
        guard status == 0 else {
            throw TestFailure("\(words.joined(separator: " ")) could not be started: errno \(status)")
        }
        return pid
    }

    /// Reads a descriptor by lines on a thread of its own, to its end.
    private static func read(
        _ descriptor: Int32, line: @escaping @Sendable (String) -> Void, atEnd: @escaping @Sendable () -> Void
    ) {
        Thread.detachNewThread {
            var partial: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Glibc.read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                for byte in buffer[..<count] {
                    if byte == 0x0A {
                        line(String(decoding: partial, as: UTF8.self))
                        partial = []
                    } else {
                        partial.append(byte)
                    }
                }
            }
            if !partial.isEmpty { line(String(decoding: partial, as: UTF8.self)) }
            close(descriptor)
            atEnd()
        }
    }

    /// What it has written to standard error so far.
    package var errors: String { state.state.withLock { $0.errors } }

    /// All that it writes to standard error: waits until it has been read to its end.
    package func allErrors() async -> String {
        for await _ in errorsEnd {}
        return errors
    }

    /// The exit status (a signal's number negative), nil while it runs.
    package var status: Int32? { state.state.withLock { $0.status } }

    /// Waits for its end.
    @discardableResult
    package func exited() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = state.state.withLock { state in
                if state.status == nil { state.waiting.append(continuation) }
                return state.status
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    package func signal(_ number: Int32) {
        if status == nil { kill(pid, number) }
    }

    /// Asks it to end (SIGTERM), insists after `patience`, and waits.
    @discardableResult
    package func terminate(patience: Duration = .seconds(60)) async -> Int32 {
        signal(SIGTERM)
        signal(SIGCONT)
        let insisting = Task {  // ended below
            try await Task.sleep(for: patience)
            self.signal(SIGKILL)
        }
        defer { insisting.cancel() }
        return await exited()
    }

    /// Kills it without a warning, and waits.
    @discardableResult
    package func killNow() async -> Int32 {
        signal(SIGKILL)
        return await exited()
    }

    /// Stops it in its tracks, until `resume`.
    package func pause() { signal(SIGSTOP) }
    package func resume() { signal(SIGCONT) }

    /// Writes a line to its standard input.
    package func send(line: String) throws {
        try input.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Ends its standard input.
    package func endInput() throws {
        try input.close()
    }
}

extension Fixture {
    /// Starts a process that is ended with the test.
    package func process(
        _ executable: URL, _ arguments: [String] = [], environment: [String: String] = [:], in folder: URL? = nil
    ) async throws -> ManagedProcess {
        let process = try await ManagedProcess.start(executable, arguments, environment: environment, in: folder)
        onEnd { await process.terminate() }
        return process
    }
}

/// The words that run a program so that the modes of files count for it even if root runs the tests: as root still, but
/// without root's power to pass them over.
package func command(
    _ executable: URL, _ arguments: [String], obeysModes: Bool
) throws -> (executable: URL, arguments: [String]) {
    guard obeysModes, geteuid() == 0 else { return (executable, arguments) }
    return (
        try program(named: "setpriv"),
        ["--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--", executable.path] + arguments
    )
}

/// Runs a program to its end.
///
/// - Returns: Its exit status and all it wrote.
package func run(
    _ executable: URL, _ arguments: [String] = [], environment: [String: String] = [:], input: String? = nil,
    in folder: URL? = nil
) async throws -> (status: Int32, output: String, errors: String) {
    let process = try await ManagedProcess.start(executable, arguments, environment: environment, in: folder)
    if let input { try process.send(line: input) }
    try process.endInput()
    var lines: [String] = []
    for await line in process.lines { lines.append(line) }
    let status = await process.exited()
    return (status, lines.joined(separator: "\n"), await process.allErrors())
}
