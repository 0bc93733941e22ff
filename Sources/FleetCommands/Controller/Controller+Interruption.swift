import FleetProtocol
import UnixSignals

extension Controller {
    /// Asks for a change, until Ctrl-C: nobody knows then whether it is made.
    func askUntilInterrupted(_ verb: Verb, _ body: some JSONWritable & Sendable) async throws -> JSONValue {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: JSONValue?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in signals { break }
                return nil
            }
            group.addTask { try await ask(verb, body) }
            guard let answer = try await group.next() ?? nil else {
                throw CommandError(.unreachable, "interrupted" + Self.doubt)
            }
            return answer
        }
    }
}
