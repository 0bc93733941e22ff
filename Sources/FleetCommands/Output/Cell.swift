import FleetProtocol

/// What stands in a cell of a table.
enum Cell {
    /// One line of text; nothing for what is absent.
    static func text(_ value: JSONValue?, limit: Int = 60) -> String {
        switch value {
        case nil, .null: ""
        case .string(let text): TerminalText.line(text, limit: limit)
        case .some(let other): TerminalText.line(other.jsonText, limit: limit)
        }
    }

    /// A count; a dot for zero, so that what is not zero stands out.
    static func count(_ number: Int64) -> String { number == 0 ? "·" : "\(number)" }

    /// The same of an answer's member, which an older controller may not give.
    static func count(_ value: JSONValue?) -> String { value?.integerValue.map { count($0) } ?? "" }

    static func time(_ value: JSONValue?) -> String {
        guard let text = value?.stringValue else { return "" }
        return Timestamp(text)?.tableText ?? TerminalText.line(text, limit: 30)
    }

    /// What a boot tells of when it began; nothing where the device's clock did not know, or its agent counted its boots.
    static func started(_ boot: JSONValue?) -> String {
        guard let boot = boot?.integerValue, boot > 1_000_000_000_000 else { return "" }
        return Timestamp(milliseconds: boot).tableText
    }
}
