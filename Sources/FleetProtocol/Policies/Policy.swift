/// What an app's status speaks about, one by one. Five aspects are desired; an aspect may hold several policies.
package enum Policy: String, CaseIterable, Hashable, Sendable, Comparable, JSONCodable {
    case auth, config, openIn, openFrom, pasteboard, print, secureFileIO
    case dragAndDrop, secureServices, logLevel

    /// The document that decides it; nil for the one that nobody can change.
    package var aspect: Aspect? {
        switch self {
        case .auth: .auth
        case .config: .config
        case .openIn, .openFrom, .pasteboard, .print, .dragAndDrop: .dlp
        case .secureServices: .secureServices
        case .logLevel: .logLevel
        case .secureFileIO: nil
        }
    }

    /// Whether the app answers for it. The others are applied by the agent, which answers itself.
    package var isAcknowledgedByApp: Bool {
        switch self {
        case .auth, .config, .openIn, .openFrom, .pasteboard, .print, .secureFileIO: true
        case .dragAndDrop, .secureServices, .logLevel: false
        }
    }

    package var index: Int {
        switch self {
        case .auth: 0
        case .config: 1
        case .openIn: 2
        case .openFrom: 3
        case .pasteboard: 4
        case .print: 5
        case .secureFileIO: 6
        case .dragAndDrop: 7
        case .secureServices: 8
        case .logLevel: 9
        }
    }

    /// The one behind it; nil behind the last.
    var next: Policy? { index + 1 < Self.allCases.count ? Self.allCases[index + 1] : nil }

    /// By its place: a raw value would be hashed as the text that it is.
    package func hash(into hasher: inout Hasher) { hasher.combine(index) }

    package static func < (left: Policy, right: Policy) -> Bool { left.index < right.index }

    package init(from reader: inout JSONReader) throws {
        self = try reader.oneOf()
    }

    package func write(to writer: inout JSONWriter) { writer.value(rawValue) }
}
