import FleetProtocol
import Testing

@Suite("Topics")
struct AddressTests {
    /// What is close to a topic of the fleet `demo`, and is none.
    static let hostile = [
        "", "/", "fleet/v1/demo", "fleet/v1/demo/", "fleet/v1/demo/desired", "fleet/v1/demo/desired/all",
        "fleet/v1/demo/desired/all/app", "fleet/v1/demo/desired/all/app/colour", "fleet/v1/demo/desired/all/app/auth/",
        "fleet/v1/demo/desired/all//auth", "fleet/v1/demo/desired/everyone/app/auth",
        "fleet/v1/demo/desired/all/a b/auth",
        "fleet/v1/demo/desired/all/_fleet/auth", "fleet/v1/demo/desired/group/g/_fleet/trust",
        "fleet/v1/demo/desired/all/_group/meta", "fleet/v1/demo/desired/device/d/_group/meta",
        "fleet/v1/demo/desired/group/g/_device/membership", "fleet/v1/demo/desired/all/+/auth", "fleet/v1/demo/#",
        "fleet/v1/demo/desired/device/../app/auth", "fleet/v1/demo/desired/device/d/app/Auth",
        "fleet/v1/demo/desired/device/@controller/app/auth", "fleet/v1/demo/reply/d/app",
        "fleet/v1/demo/reply/d/app/Status",
        "fleet/v1/demo/reply/d/app/status/x", "fleet/v1/demo/presence/@operator.alice", "fleet/v1/demo/presence/d/x",
        "fleet/v1/demo/control/heartbeat/x", "fleet/v1/demo/control/hello", "fleet/v1/demo/control/hello/@controller",
        "fleet/v1/demo/control/barrier/@operator.", "fleet/v1/demo/control/barrier/@admin.x",
        "fleet/v1/demo/control/request/@operator.alice/explode", "fleet/v1/demo/control/response/@operator.alice/",
        "fleet/v1/demo/control/response/@operator.alice/a/b", "fleet/v1/other/control/heartbeat",
        "fleet/v2/demo/control/heartbeat", "/fleet/v1/demo/control/heartbeat", "Fleet/v1/demo/control/heartbeat",
        "fleet/v1/demo/control/heartbeat\n", "fleet/v1/demo/control/heartbeat\u{0}",
        "fleet/v1/demo/control/heartbeat\u{301}",
        "fleet/v1/demo\u{301}/control/heartbeat", "fleet/v1/demo/reply/d\u{E9}/app/status",
        "fleet/v1/demo/reply/\u{FF41}/app/status", "$SYS/broker/uptime",
        "fleet/v1/demo/reply/" + String(repeating: "d", count: 49) + "/app/status",
    ]

    @Test("every address is read from the topic that it prints, and from no other fleet's")
    func bijection() throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let fleet = generator.fleet()
            for address in generator.addresses() {
                let topic = address.topic(in: fleet)
                try #require(Address(topic: topic, in: fleet) == address, "\(topic), seed \(seed)")
                #expect(topic.split(separator: "/", omittingEmptySubsequences: false).count <= 8)
                #expect(Address(topic: topic, in: FleetID(unchecked: fleet.text + "x")) == nil)
            }
        }
    }

    @Test("what is no topic of the fleet is no address", arguments: hostile)
    func refuse(_ topic: String) { #expect(Address(topic: topic, in: FleetID(unchecked: "demo")) == nil) }

    @Test("a topic that Unicode holds to be equal is another topic")
    func unicode() {
        #expect(Address(topic: "fleet/v1/\u{212A}iosk/control/heartbeat", in: FleetID(unchecked: "Kiosk")) == nil)
    }

    @Test("a mutated topic is none, or prints itself")
    func mutation() {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        let fleet = FleetID(unchecked: "demo")
        let topics = generator.addresses().map { Array($0.topic(in: fleet).utf8) }
        for _ in 0..<50_000 {
            var bytes = topics[Int.random(in: 0..<topics.count, using: &generator)]
            for _ in 0...generator.number(0...2) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                if generator.chance(50) {
                    bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
                } else if bytes.count > 1 {
                    bytes.remove(at: place)
                }
            }
            let topic = String(decoding: bytes, as: UTF8.self)
            guard let address = Address(topic: topic, in: fleet) else { continue }
            #expect(Array(address.topic(in: fleet).utf8) == Array(topic.utf8), "\(topic), seed \(seed)")
        }
    }

    @Test("a layer is read from what it prints, and says what it expected otherwise")
    func layers() throws {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            let layer = generator.layer()
            #expect(try Layer(parsing: layer.description) == layer)
        }
        for text in ["", "All", "group", "group/", "device/a/b", "kiosk"] {
            #expect(throws: FleetProtocolError.self) { try Layer(parsing: text) }
        }
    }
}
