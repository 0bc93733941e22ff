/// How long a test waits for what must come. Tests of a target run beside each other, and the ones that only compute may
/// keep the others from every step of theirs for a minute on a slow machine.
package let patience = Duration.seconds(180)

/// Waits until `condition` holds, for what sends no event of its own; prefer to await events where there are some.
///
/// - Throws: `TestFailure` naming `what`, after ``patience``.
package func until(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + patience
    var pause = Duration.milliseconds(1)
    while try await !condition() {
        if ContinuousClock.now >= deadline { throw TestFailure("\(what): not within \(patience)") }
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(50))
    }
}

/// Runs `body`, and fails when it takes longer than ``patience``, so that a lost event ends one test and not the whole run.
package func within<Value: Sendable>(
    _ what: String = "the test's step", _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: patience)
            throw TestFailure("\(what): not within \(patience)")
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw TestFailure("\(what): nothing came") }
        return value
    }
}
