/// Something that happened to an app on a device and is worth telling: kept on the device until the controller has it.
package struct AppEvent: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Hashable, Sendable {
        /// The app tried what its policy blocks.
        case blocked
        /// The app has been told its first properties of this launch.
        case ready
        /// The app's keys have been destroyed.
        case wiped
        case locked
        case unlocked
        /// A process that may not be this app wanted to register as it.
        case refused
    }

    /// What an app tried.
    package enum Action: String, CaseIterable, Hashable, Sendable {
        case openIn, openURL, openFrom, copy, dragAndDrop, print
    }

    package var header: EventHeader
    package var kind: Kind
    /// For ``Kind/blocked``.
    package var action: Action?
    /// The app or URL that an action was aimed at.
    package var target: String?
    package var message: String?

    package init(header: EventHeader, kind: Kind, action: Action? = nil, target: String? = nil, message: String? = nil)
    {
        self.header = header
        self.kind = kind
        self.action = action
        self.target = target
        self.message = message
    }

    /// The largest event or log-level change on the wire, in bytes.
    package static let maximumSize = 4 * 1_024
    /// How long target and message are, each: in characters, and in bytes so that the whole always fits.
    private static let maximumText = 500
    private static let maximumTextSize = 1_500

    private static func cut(_ text: String) -> String {
        Text.printable(text, limit: maximumText, bytes: maximumTextSize)
    }
}

extension AppEvent: JSONWritable {
    package init(wire: [UInt8], device: DeviceID, app: AppID) throws {
        var header = EventHeader.Members()
        var kind: Kind?
        var action: Action?
        var target: String?
        var message: String?
        try JSONReader.read(wire, limit: Self.maximumSize) { reader in
            try reader.object { name, value in
                switch name {
                case "event": kind = try value.oneOf()
                case "action": action = try value.oneOf()
                case "target": target = try value.message(limit: Self.maximumText)
                case "message": message = try value.message(limit: Self.maximumText)
                default: try header.read(name, &value)
                }
            }
        }
        self.init(
            header: try header.header(device: device, app: app), kind: try required(kind, "event"), action: action,
            target: target, message: message)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            header.writeMembers(to: &writer)
            writer.member("event", kind.rawValue)
            writer.member("action", ifPresent: action?.rawValue)
            // One that is too large would be refused each time it is sent, and the numbers behind it wait for it.
            writer.member("target", ifPresent: target.map(Self.cut))
            writer.member("message", ifPresent: message.map(Self.cut))
        }
    }
}
