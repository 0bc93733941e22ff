import FleetProtocol

/// What a line from the agent turned out to be. Any bytes are one of these.
enum AgentLine: Hashable, Sendable {
    case frame(AgentFrame)
    case unreadable(UnreadableDelivery)
    /// Well-formed, and of a kind or with a value that this library does not know: passed over. With the number of the
    /// delivery that it is.
    case unknown(String, delivery: Int64?)
    /// Not the link at all: the connection is dropped.
    case garbage(AppConnectError)

    init(_ line: [UInt8]) {
        do {
            self = .frame(try AgentFrame(json: line, limit: Link.maximumLine))
        } catch let error as FleetProtocolError {
            if let delivery = UnreadableDelivery(line: line, error: error) {
                self = .unreadable(delivery)
            } else if Self.type(of: line) == "keys" {
                // Those from before are not the app's any more, whatever these are.
                self = .frame(.keys(nil))
            } else if let delivery = UnreadableDelivery.number(in: line) {
                self = .unknown(error.description, delivery: delivery)
            } else if error.code == .value || Self.isOfUnknownKind(line) {
                self = .unknown(error.description, delivery: nil)
            } else {
                let code: AppConnectError.Code = error.code == .version ? .version : .badFrame
                self = .garbage(AppConnectError(code, "a line of the agent: \(error)"))
            }
        } catch {
            self = .garbage(AppConnectError(.badFrame, "a line of the agent: \(error)"))
        }
    }

    private static func type(of line: [UInt8]) -> String? {
        (try? JSONValue(json: line, limit: Link.maximumLine))?["type"]?.stringValue
    }

    /// Whether a line is of a type, or delivers something, that this library does not know. Its members may then have
    /// any JSON type.
    private static func isOfUnknownKind(_ line: [UInt8]) -> Bool {
        guard let frame = try? JSONValue(json: line, limit: Link.maximumLine), let type = frame["type"]?.stringValue
        else { return false }
        guard type == "deliver" else { return !AgentFrame.types.contains(type) }
        guard let what = frame["what"]?.stringValue else { return false }
        return Policy(rawValue: what) == nil && what != "managed" && what != "availability"
    }
}
