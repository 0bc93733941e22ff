import Mosquitto
import TestSupport
import Testing

@Suite("What no broker would accept")
struct ValidationTests {
    static let topics = [
        "", "a/+", "#", "a\u{0}b", "a\u{1}b", String(repeating: "x", count: 65_536), "\u{FFFF}",
    ]

    @Test("bad topics and filters are thrown, name the place, and leave the connection alone")
    func topics() async throws {
        try await withFixture { fixture in
            let client = try fixture.client("strict", of: await fixture.broker(), on: fixture.loop())
            try await client.connect()
            for topic in Self.topics {
                let error = try await #require(throws: MosquittoError.self) {
                    try await client.publish("x", to: topic)
                }
                #expect(error.code == .invalidArgument || error.code == .payloadTooLarge, "\(error)")
                #expect(!error.message.unicodeScalars.contains { $0.value < 32 }, "\(error)")
            }
            for filter in ["", "a/#/b", "a+", "a\u{0}", "#a"] {
                for attempt in [client.subscribeOne, client.unsubscribeOne] {
                    let error = try await #require(throws: MosquittoError.self) { try await attempt(filter) }
                    #expect(error.code == .invalidArgument, "\(error)")
                }
            }
            await #expect(throws: MosquittoError.self) { try await client.subscribe(to: []) }
            #expect(client.state == .connected(number: 1))
            #expect(try await client.publish("x", to: "ok") == .noMatchingSubscribers)
        }
    }

    @Test("a payload beyond the limit is thrown, and one at the broker's limit too")
    func payloads() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker(["max_packet_size 2000"])
            let client = try fixture.client("large", of: broker, on: fixture.loop())
            try await client.connect()
            for size in [2001, 17 << 20] {
                let error = try await #require(throws: MosquittoError.self) {
                    try await client.publish([UInt8](repeating: 0, count: size), to: "a")
                }
                #expect(error.code == .payloadTooLarge)
            }
            #expect(try await client.publish([UInt8](repeating: 0, count: 1900), to: "a") == .noMatchingSubscribers)
            #expect(client.state == .connected(number: 1))
        }
    }

    @Test(
        "bad options are thrown by name",
        arguments: [
            "host", "port", "clientID", "keepAlive", "password", "will", "tls", "maximumPacketSize", "userName",
        ])
    func options(name: String) async throws {
        try await withFixture { fixture in
            let loop = try fixture.loop()
            var options = ClientOptions(host: "127.0.0.1", clientID: "x")
            switch name {
            case "host": options.host = "127.0.0.1\u{0}.example"
            case "port": options.port = 0
            case "clientID": options.clientID = ""
            case "keepAlive": options.keepAlive = .seconds(2)
            case "password": options.password = Password([1, 0, 2])
            case "will": options.will = .init(topic: "a/#", payload: [])
            case "tls": options.tls = .init(authorityFile: "/ca", certificateFile: "/c", keyFile: nil)
            case "maximumPacketSize": options.maximumPacketSize = .max
            default: options.userName = "a\u{0}b"
            }
            let error = #expect(throws: MosquittoError.self) { try MQTTClient(options, on: loop) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains(name) == true, "\(String(describing: error))")
        }
    }
}

extension MQTTClient {
    fileprivate func subscribeOne(_ filter: String) async throws { try await subscribe(to: [filter]) }
    fileprivate func unsubscribeOne(_ filter: String) async throws { try await unsubscribe(from: [filter]) }
}
