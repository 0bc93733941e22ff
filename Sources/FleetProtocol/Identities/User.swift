/// Who speaks to the broker: its MQTT user name.
package enum User: Hashable, Sendable {
    case device(DeviceID)
    case controller
    case `operator`(Name)
    case viewer(Name)
    case bridge(Name)

    package var text: String {
        switch self {
        case .device(let id): id.text
        case .controller: "@controller"
        case .operator(let name): "@operator.\(name)"
        case .viewer(let name): "@viewer.\(name)"
        case .bridge(let name): "@bridge.\(name)"
        }
    }

    package init?(_ text: some StringProtocol) {
        if text == "@controller" {
            self = .controller
        } else if let name = Self.name(in: text, behind: "@operator.") {
            self = .operator(name)
        } else if let name = Self.name(in: text, behind: "@viewer.") {
            self = .viewer(name)
        } else if let name = Self.name(in: text, behind: "@bridge.") {
            self = .bridge(name)
        } else if let id = DeviceID(text) {
            self = .device(id)
        } else {
            return nil
        }
    }

    private static func name(in text: some StringProtocol, behind prefix: String) -> Name? {
        text.hasPrefix(prefix) ? Name(text.dropFirst(prefix.count)) : nil
    }
}
