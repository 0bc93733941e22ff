/// The `dlp` aspect. A member that is absent is unauthorized.
package struct DLP: Hashable, Sendable {
    package var openIn: Opening = .unauthorized
    package var openFrom: Opening = .unauthorized
    package var pasteboard: PasteboardPolicy = .unauthorized
    package var print: PrintPolicy = .unauthorized
    package var dragAndDrop: DragAndDropPolicy = .notAllowed

    package init() {}

    /// To or from whom documents may go.
    package enum Opening: Hashable, Sendable {
        case unauthorized
        case authorized
        case whitelist([AppID])
        /// The apps of this device that are authorized at the moment: the agent makes a whitelist of it.
        case appConnectApps

        package static let names = ["unauthorized", "authorized", "whitelist", "appConnectApps"]
    }
}

extension DLP.Opening: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var policy: String?
        var apps: [AppID]?
        try reader.object { name, value in
            switch name {
            case "policy": policy = try value.string()
            case "apps": apps = try value.values(limit: 1_024)
            default: break
            }
        }
        switch try required(policy, "policy") {
        case "unauthorized": self = .unauthorized
        case "authorized": self = .authorized
        case "whitelist": self = .whitelist(Array(Set(try required(apps, "apps"))).sorted())
        case "appConnectApps": self = .appConnectApps
        case let unknown:
            throw FleetProtocolError(
                .value,
                "unknown value '\(Text.printable(unknown, limit: 40))': expected "
                    + Self.names.joined(separator: ", "), at: "policy")
        }
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .unauthorized: writer.member("policy", "unauthorized")
            case .authorized: writer.member("policy", "authorized")
            case .whitelist(let apps):
                writer.member("policy", "whitelist")
                writer.member("apps", apps)
            case .appConnectApps: writer.member("policy", "appConnectApps")
            }
        }
    }
}

extension DLP: JSONWritable {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("openIn", openIn)
            writer.member("openFrom", openFrom)
            writer.member("pasteboard", pasteboard)
            writer.member("print", print)
            writer.member("dragAndDrop", dragAndDrop)
        }
    }
}
