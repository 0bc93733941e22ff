/// What was wrong with something that came from outside: which rule it broke, and at which member.
public struct FleetProtocolError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of mistake. New ones may come, so a `switch` over them needs a `default`.
    public struct Code: Hashable, Sendable {
        enum Raw {
            case syntax, missing, type, value, tooLarge, tooDeep, duplicate, version, signature, unknownKey, mismatch
        }
        let raw: Raw
        /// Not JSON as RFC 8259 has it.
        public static let syntax = Code(raw: .syntax)
        /// A member that must be there is not.
        public static let missing = Code(raw: .missing)
        /// A member has another JSON type than it must.
        public static let type = Code(raw: .type)
        /// A member's value is outside what is allowed.
        public static let value = Code(raw: .value)
        /// More bytes or entries than the limit.
        public static let tooLarge = Code(raw: .tooLarge)
        /// More levels of nesting than the limit.
        public static let tooDeep = Code(raw: .tooDeep)
        /// A member occurs twice in one object.
        public static let duplicate = Code(raw: .duplicate)
        /// A format version that this build does not know.
        public static let version = Code(raw: .version)
        /// A signature that does not fit key and bytes, or a header that is not exactly ours.
        public static let signature = Code(raw: .signature)
        /// Signed by a key that is not trusted (yet).
        public static let unknownKey = Code(raw: .unknownKey)
        /// The document belongs to another fleet, topic or device.
        public static let mismatch = Code(raw: .mismatch)
    }

    /// The kind of mistake.
    public let code: Code
    /// For people: what was expected, and what was there.
    public let message: String
    /// The member that was wrong, such as `value.openIn.apps[2]`; empty for the document itself.
    public let path: String

    /// Whether it is well-formed JSON all the same: what was not understood can be passed over.
    package var isAboutMeaning: Bool { code != .syntax && code != .tooDeep }

    package init(_ code: Code, _ message: String, at path: String = "") {
        self.code = code
        self.message = message
        self.path = path
    }

    /// The same mistake, seen from the object or array around it.
    package func inside(_ component: String) -> FleetProtocolError {
        let joined: String
        if path.isEmpty {
            joined = component
        } else if path.hasPrefix("[") {
            joined = component + path
        } else {
            joined = component + "." + path
        }
        return FleetProtocolError(code, message, at: joined)
    }

    /// `value.openIn.policy: expected a string, found a number`
    public var description: String {
        // It holds names of whoever wrote the JSON.
        path.isEmpty ? message : "\(Text.printable(path)): \(message)"
    }
}
