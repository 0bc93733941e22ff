import FleetProtocol

/// One thing that happened.
struct LiveEntry: Hashable {
    enum Kind: String { case acknowledgement, logLevel = "log-level", event, presence, refusal, unreadable }

    /// When it was heard of here.
    let at: Timestamp
    let device: String
    let app: String?
    let kind: Kind
    let text: String
    let members: [JSONValue.Member]

    /// `09:24:00  till-0001     com.example.mail    auth 42 applied (all)`
    var line: String {
        let columns = [
            at.timeOfDay, Self.padded(device, 12), Self.padded(app ?? "", 20), TerminalText.line(text, limit: 160),
        ]
        return columns.joined(separator: "  ")
    }

    var value: JSONValue {
        .object(
            [.init("at", .string(at.description)), .init("device", .string(device))]
                + (app.map { [.init("app", .string($0))] } ?? [])
                + [.init("kind", .string(kind.rawValue)), .init("text", .string(Text.printable(text)))]
                + members.filter { $0.name != "at" })
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - TerminalText.width(text)))
    }
}
