internal import Synchronization

/// What a test has started, cleaned up in the opposite order when the test's body ends, however it ends.
package final class Fixture: Sendable {
    private let cleanups = Mutex<[@Sendable () async -> Void]>([])

    /// Adds a clean-up, which runs before those that were added earlier.
    package func onEnd(_ cleanup: @escaping @Sendable () async -> Void) {
        cleanups.withLock { $0.append(cleanup) }
    }

    fileprivate func end() async {
        while let cleanup = cleanups.withLock({ $0.popLast() }) { await cleanup() }
    }
}

/// Runs a test's body with a fixture, and cleans up after it.
package func withFixture<Value>(_ body: (Fixture) async throws -> Value) async throws -> Value {
    let fixture = Fixture()
    do {
        let value = try await body(fixture)
        await fixture.end()
        return value
    } catch {
        await fixture.end()
        throw error
    }
}
