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
            } else if let stricter = Self.stricter(line) {
                self = .frame(stricter)
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

    /// What a line counts as that says something this library does not know of what the app may use: it may not, whatever
    /// it could before.
    private static func stricter(_ line: [UInt8]) -> AgentFrame? {
        guard let frame = try? JSONValue(json: line, limit: Link.maximumLine) else { return nil }
        return switch (frame["type"]?.stringValue, frame["what"]?.stringValue) {
        case ("keys", _): .keys(nil)
        case ("refused", _):
            .refused(
                .notAllowed, message: Text.printable(frame["message"]?.stringValue ?? "the agent does not say why"))
        case ("deliver", "availability"):
            UnreadableDelivery.number(in: line).map { .deliver(number: $0, .availability(.unavailable)) }
        default: nil
        }
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
