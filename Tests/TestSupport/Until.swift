/// Waits until `condition` holds, for what sends no event of its own; prefer to await events where there are some.
///
/// - Throws: `TestFailure` naming `what`, after `timeout`.
package func until(
    _ what: String, within timeout: Duration = .seconds(20), _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + timeout
    var pause = Duration.milliseconds(1)
    while try await !condition() {
        if ContinuousClock.now >= deadline { throw TestFailure("\(what): not within \(timeout)") }
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(50))
    }
}

/// Runs `body`, and fails when it takes longer than `timeout`, so that a lost event ends one test and not the whole run.
package func within<Value: Sendable>(
    _ timeout: Duration = .seconds(20), _ what: String = "the test's step",
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: timeout)
            throw TestFailure("\(what): not within \(timeout)")
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw TestFailure("\(what): nothing came") }
        return value
    }
}
