import Mosquitto
import TestSupport

extension Fixture {
    /// An event loop that is shut down with the test.
    func loop() throws -> EventLoop {
        let loop = try EventLoop(name: "test")
        onEnd { await loop.shutdown() }
        return loop
    }

    /// A client of the broker that is closed with the test.
    func client(
        _ id: String, of broker: TestBroker, on loop: EventLoop, messageBuffer: Int = 1000,
        _ change: (inout ClientOptions) -> Void = { _ in }
    ) throws -> MQTTClient {
        let client = try MQTTClient(options(id, of: broker, change), on: loop, messageBuffer: messageBuffer)
        onEnd { await client.close() }
        return client
    }
}

/// Options for a test: quick to try again.
func options(
    _ id: String, of broker: TestBroker, _ change: (inout ClientOptions) -> Void = { _ in }
) -> ClientOptions {
    var options = ClientOptions(host: broker.host, port: broker.port, clientID: id)
    options.backoff = Backoff(minimum: .milliseconds(20), maximum: .milliseconds(200))
    change(&options)
    return options
}

/// Waits for a state.
func reach(
    _ client: MQTTClient, _ what: String, _ match: @escaping @Sendable (ConnectionState) -> Bool
) async throws {
    let states = client.states
    try await within(what) {
        for await state in states where match(state) { return }
        throw TestFailure("\(what): the states ended before, with \(client.state)")
    }
}

/// The first `count` messages.
func collect(_ count: Int, from client: MQTTClient) async throws -> [Message] {
    let messages = client.messages
    return try await within("\(count) messages") {
        var got: [Message] = []
        for await message in messages {
            got.append(message)
            if got.count == count { break }
        }
        return got
    }
}
