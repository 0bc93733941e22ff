/// The `secure-services` aspect: passcode, auto-lock and how long a device may be out of contact. Durations in seconds.
package struct SecureServicesValue: Hashable, Sendable {
    package var isLocked = false
    package var passcode: Passcode?
    package var autoLock: Int64?
    package var offline: Offline?

    package struct Passcode: Hashable, Sendable {
        package var isRequired: Bool
        package var minLength: Int64?
        package var classes: [String]?
        package var maxAttempts: Int64?
        package var then: Consequence?

        package enum Consequence: String, CaseIterable, Sendable { case lock, wipe }
        package init(isRequired: Bool) { self.isRequired = isRequired }

        package static let classNames = ["digit", "letter", "lower", "upper", "symbol"]
    }

    package struct Offline: Hashable, Sendable {
        package var blockAfter: Int64?
        package var wipeAfter: Int64?

        package init(blockAfter: Int64? = nil, wipeAfter: Int64? = nil) {
            self.blockAfter = blockAfter
            self.wipeAfter = wipeAfter
        }

        /// Whether a device may be longer out of contact by `new` than by `old`.
        static func loosens(_ old: Offline?, _ new: Offline?) -> Bool {
            func isLater(_ old: Int64?, _ new: Int64?) -> Bool { (new ?? .max) > (old ?? .max) }
            return isLater(old?.blockAfter, new?.blockAfter) || isLater(old?.wipeAfter, new?.wipeAfter)
        }
    }

    package init() {}

    private static let longest: Int64 = 100 * 366 * 86_400
}

extension SecureServicesValue: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var result = SecureServicesValue()
        try reader.object { name, value in
            switch name {
            case "locked": result.isLocked = try value.bool()
            case "passcode": result.passcode = try Passcode(from: &value)
            case "autoLock": result.autoLock = try value.integer(in: 1...Self.longest)
            case "offline":
                var offline = Offline()
                try value.object { name, value in
                    switch name {
                    case "blockAfter": offline.blockAfter = try value.integer(in: 1...Self.longest)
                    case "wipeAfter": offline.wipeAfter = try value.integer(in: 1...Self.longest)
                    default: break
                    }
                }
                result.offline = offline
            default: break
            }
        }
        self = result
    }

    package func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("locked", isLocked)
        if let passcode {
            writer.member("passcode") { writer in
                writer.object { writer in
                    writer.member("required", passcode.isRequired)
                    writer.member("minLength", ifPresent: passcode.minLength)
                    if let classes = passcode.classes { writer.member("classes", classes) }
                    writer.member("maxAttempts", ifPresent: passcode.maxAttempts)
                    writer.member("then", ifPresent: passcode.then?.rawValue)
                }
            }
        }
        writer.member("autoLock", ifPresent: autoLock)
        if let offline {
            writer.member("offline") { writer in
                writer.object { writer in
                    writer.member("blockAfter", ifPresent: offline.blockAfter)
                    writer.member("wipeAfter", ifPresent: offline.wipeAfter)
                }
            }
        }
    }
}

extension SecureServicesValue.Passcode: JSONReadable {
    package init(from reader: inout JSONReader) throws {
        var isRequired: Bool?
        var result = Self(isRequired: false)
        try reader.object { name, value in
            switch name {
            case "required": isRequired = try value.bool()
            case "minLength": result.minLength = try value.integer(in: 1...64)
            case "classes":
                let classes: [String] = try value.values(limit: Self.classNames.count)
                if let unknown = classes.first(where: { !Self.classNames.contains($0) }) {
                    throw FleetProtocolError(
                        .value,
                        "unknown class '\(Text.printable(unknown, limit: 40))': expected "
                            + Self.classNames.joined(separator: ", "))
                }
                result.classes = classes
            case "maxAttempts": result.maxAttempts = try value.integer(in: 1...1_000)
            case "then": result.then = try value.oneOf()
            default: break
            }
        }
        result.isRequired = try required(isRequired, "required")
        self = result
    }
}
