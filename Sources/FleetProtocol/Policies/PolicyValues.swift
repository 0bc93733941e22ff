/// How an app answers a change of policy.
public enum PolicyState: Int, WireNamed, JSONCodable {
    case unsupported, applied, error
    /// The names on the wire, by raw value.
    public static let wireNames = ["unsupported", "applied", "error"]
}

/// Whether a fleet says anything about the app.
public enum ManagedPolicy: Int, WireNamed, JSONCodable {
    case unknown, unmanaged, managed
    /// The names on the wire, by raw value.
    public static let wireNames = ["unknown", "unmanaged", "managed"]
}

/// What the app may do at all.
public enum AuthState: Int, WireNamed, JSONCodable {
    case unauthorized, authorized, retired
    /// The names on the wire, by raw value.
    public static let wireNames = ["unauthorized", "authorized", "retired"]
}

/// Why the app is in its authorization state: for programs, the message is for people.
public enum AuthReason: Int, WireNamed, JSONCodable {
    case none, policy, outOfContact, passcodeAttempts, selfRetired, unknownValue
    /// The names on the wire, by raw value.
    public static let wireNames = ["none", "policy", "outOfContact", "passcodeAttempts", "selfRetired", "unknownValue"]
}

/// Copying out of the app; under `secureCopy` for authorized apps of the device alone, which the library sees to.
public enum PasteboardPolicy: Int, WireNamed, JSONCodable {
    case unauthorized, authorized, secureCopy
    /// The names on the wire, by raw value.
    public static let wireNames = ["unauthorized", "authorized", "secureCopy"]
}

/// Handing documents and URLs to other apps.
public enum OpenInPolicy: Int, WireNamed, JSONCodable {
    case unauthorized, authorized, whitelist
    /// The names on the wire, by raw value.
    public static let wireNames = ["unauthorized", "authorized", "whitelist"]
}

/// Taking documents from other apps.
public enum OpenFromPolicy: Int, WireNamed, JSONCodable {
    case unauthorized, authorized, whitelist
    /// The names on the wire, by raw value.
    public static let wireNames = ["unauthorized", "authorized", "whitelist"]
}

/// Printing.
public enum PrintPolicy: Int, WireNamed, JSONCodable {
    case unauthorized, authorized
    /// The names on the wire, by raw value.
    public static let wireNames = ["unauthorized", "authorized"]
}

/// Dragging out of the app. The library enforces it; the app sees only the attempt.
public enum DragAndDropPolicy: Int, WireNamed, JSONCodable {
    case notAllowed, appConnectApps, allApps
    /// The names on the wire, by raw value.
    public static let wireNames = ["notAllowed", "appConnectApps", "allApps"]
}

/// Whether files must be encrypted. The fleet always asks for it.
public enum SecureFileIOPolicy: Int, WireNamed, JSONCodable {
    case optional, required
    /// The names on the wire, by raw value.
    public static let wireNames = ["optional", "required"]
}

/// Whether the app's keys can be used now.
public enum SecureServicesAvailability: Int, WireNamed, JSONCodable {
    case unavailable, available
    /// The names on the wire, by raw value.
    public static let wireNames = ["unavailable", "available"]
}

/// How much an app logs: a message is emitted when its level is not above the app's.
public enum LogLevel: Int, WireNamed, JSONCodable, Comparable {
    case error, warning, status, info, verbose, debug
    /// The names on the wire, by raw value.
    public static let wireNames = ["error", "warning", "status", "info", "verbose", "debug"]

    /// Less detail is less.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    /// Whether messages of this level may hold sensitive data.
    package var isSensitive: Bool { self >= .verbose }
}
