import Dispatch
import Glibc

/// Runs `body` until it ends, or until the process is asked to end (SIGINT, SIGTERM); then its task is cancelled.
func untilEndSignal<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value? {
    let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let sources = [SIGINT, SIGTERM].map { number in
        Glibc.signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler { signal.yield() }
        source.resume()
        return source
    }
    defer { for source in sources { source.cancel() } }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            for await _ in signals { return nil }
            return nil
        }
        let first = try await group.next() ?? nil
        group.cancelAll()
        while (try? await group.next()) != nil {}
        return first
    }
}
