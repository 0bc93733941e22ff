package import Foundation
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
        let process = Process()
        // Children of a test body inherit blocked signals; and none may outlive the tests.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["--default-signal=TERM,HUP,INT", "setpriv", "--pdeathsig", "KILL", "--", executable.path] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if let folder { process.currentDirectoryURL = folder }
        let input = Pipe()
        let output = Pipe()
        let errors = Pipe()
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        let shared = Shared()
        let (lines, line) = AsyncStream.makeStream(of: String.self)
        let partial = Mutex(Data())
        output.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            partial.withLock { partial in
                partial.append(data)
                while let end = partial.firstIndex(of: 0x0A) {
                    line.yield(String(decoding: partial[partial.startIndex..<end], as: UTF8.self))
                    partial.removeSubrange(partial.startIndex...end)
                }
                if data.isEmpty, !partial.isEmpty { line.yield(String(decoding: partial, as: UTF8.self)) }
            }
            if data.isEmpty {
                handle.readabilityHandler = nil
                line.finish()
            }
        }
        errors.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            shared.state.withLock { $0.errors += String(decoding: data, as: UTF8.self) }
        }
        process.terminationHandler = { process in
            let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            let waiting = shared.state.withLock { state in
                state.status = status
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume(returning: status) }
        }
        do {
            try process.run()
        } catch {
            throw TestFailure("\(executable.path) could not be started: \(error)")
        }
        self.lines = lines
        self.pid = process.processIdentifier
        self.name = executable.lastPathComponent
        self.state = shared
        self.input = input.fileHandleForWriting
    }

    /// What it has written to standard error so far.
    package var errors: String { state.state.withLock { $0.errors } }

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
    package func terminate(patience: Duration = .seconds(10)) async -> Int32 {
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
    return (status, lines.joined(separator: "\n"), process.errors)
}
