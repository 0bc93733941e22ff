import FleetProtocol
import UnixSignals

extension Controller {
    /// Asks for a change, until Ctrl-C: nobody knows then whether it is made.
    func askUntilInterrupted(_ verb: Verb, _ body: some JSONWritable & Sendable) async throws -> JSONValue {
        try await Self.untilInterrupted { try await ask(verb, body) }
    }

    /// Runs `body`, and cancels it at Ctrl-C.
    ///
    /// - Parameters:
    ///   - consequence: What is said of an interruption.
    ///   - earlier: Those that were asked for before: an interruption since then counts.
    static func untilInterrupted<Result: Sendable>(
        saying consequence: String = doubt, by earlier: UnixSignalsSequence? = nil,
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let signals = if let earlier { earlier } else { await interruptions() }
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in signals { break }
                return nil
            }
            group.addTask { try await body() }
            guard let result = try await group.next() ?? nil else {
                throw CommandError(.unreachable, "interrupted" + consequence)
            }
            return result
        }
    }

    /// From now on Ctrl-C does not end the process, and waits to be looked at.
    static func interruptions() async -> UnixSignalsSequence {
        await UnixSignalsSequence(trapping: .sigint, .sigterm)
    }
}
