import FleetProtocol
import Foundation
import Testing

@Suite("asyncapi.yaml")
struct AsyncAPITests {
    /// The addresses of the channels, and what is wrong with the document.
    private func channels() throws -> [String] {
        let result = try SchemaFolder.validate("--asyncapi")
        #expect(result.isValid, "\(result.lines.joined(separator: "\n"))")
        return result.lines.filter { $0.hasPrefix("fleet/") }
    }

    /// The topic of a channel with something in the place of its parameters, or nil for a parameter nobody knows.
    private func topic(of channel: String, verb: Verb = .status, aspect: Aspect = .dlp) -> String? {
        var topic = channel
        let values = [
            "{fleet}": "demo", "{device}": "till-0042", "{app}": "com.example.mail", "{group}": "kiosk",
            "{aspect}": aspect.text, "{user}": "@operator.alice", "{verb}": verb.rawValue, "{replyTo}": "r1",
        ]
        for (name, value) in values { topic = topic.replacing(name, with: value) }
        return topic.contains("{") ? nil : topic
    }

    @Test("every channel is an address")
    func channelsAreAddresses() throws {
        for channel in try channels() {
            let topic = try #require(self.topic(of: channel), "\(channel) has an unknown parameter")
            let address = try #require(Address(topic: topic, in: Format.fleet), "\(channel) is no address")
            #expect(address.topic(in: Format.fleet) == topic)
        }
    }

    @Test("every address has exactly one channel")
    func addressesHaveChannels() throws {
        let channels = try channels()
        var generator = SeededGenerator(seed: 1)
        let addresses = generator.addresses()
        #expect(Set(addresses.map(\.kind)) == Address.kinds)
        for address in addresses {
            let topic = address.topic(in: Format.fleet).split(separator: "/")
            let fitting = channels.filter { channel in
                let levels = channel.split(separator: "/")
                return levels.count == topic.count
                    && zip(levels, topic).allSatisfy { level, part in
                        level == part
                            || level.hasPrefix("{") && !part.hasPrefix("_")
                                && (part != "@controller" || level == "{user}")
                    }
            }
            #expect(fitting.count == 1, "\(address): \(fitting)")
        }
    }
}
