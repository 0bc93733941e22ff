import FleetProtocol

/// A delivery whose value this library does not know, sent by a newer agent.
///
/// It must not leave in force what was before: authorization and data protection then count as their defaults, which
/// allow nothing. The configuration and log level stay as they are; such a line is passed over like any unknown one.
struct UnreadableDelivery: Hashable, Sendable {
    let number: Int64
    let policy: Policy
    let problem: String

    /// Finds out whether `line`, which could not be read for `error`, is one.
    init?(line: [UInt8], error: FleetProtocolError) {
        guard let (number, frame) = Self.delivery(in: line),
            let policy = frame["what"]?.stringValue.flatMap(Policy.init)
        else { return nil }
        switch policy {
        case .auth, .openIn, .openFrom, .pasteboard, .print, .secureFileIO, .dragAndDrop: break
        case .config, .secureServices, .logLevel: return nil
        }
        self.number = number
        self.policy = policy
        problem = Text.printable(error.description)
    }

    /// The number of the delivery that a line is, whatever it delivers.
    static func number(in line: [UInt8]) -> Int64? { delivery(in: line)?.number }

    private static func delivery(in line: [UInt8]) -> (number: Int64, frame: JSONValue)? {
        guard let frame = try? JSONValue(json: line, limit: Link.maximumLine), frame["type"]?.stringValue == "deliver",
            let number = frame["delivery"]?.integerValue, (0...Registration.Resume.largestDelivery).contains(number)
        else { return nil }
        return (number, frame)
    }
}
