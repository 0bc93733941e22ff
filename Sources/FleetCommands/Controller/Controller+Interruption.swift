import FleetProtocol
import UnixSignals

extension Controller {
    /// Asks for a change, until Ctrl-C: nobody knows then whether it is made.
    func askUntilInterrupted(_ verb: Verb, _ body: some JSONWritable & Sendable) async throws -> JSONValue {
        try await Self.untilInterrupted { try await ask(verb, body) }
    }

    /// Runs `body`, and cancels it at Ctrl-C.
    ///
    /// - Parameter consequence: What is said of an interruption.
    static func untilInterrupted<Result: Sendable>(
        saying consequence: String = doubt, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
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
}
