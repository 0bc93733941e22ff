/// What a desired document speaks about.
package enum Aspect: String, CaseIterable, Hashable, Sendable, Comparable, JSONCodable {
    case auth
    case dlp
    case config
    case secureServices = "secure-services"
    case logLevel = "log-level"

    package var text: String { rawValue }

    package var index: Int {
        switch self {
        case .auth: 0
        case .dlp: 1
        case .config: 2
        case .secureServices: 3
        case .logLevel: 4
        }
    }

    /// By its place: a raw value would be hashed as the text that it is.
    package func hash(into hasher: inout Hasher) { hasher.combine(index) }

    package static func < (left: Aspect, right: Aspect) -> Bool { left.rawValue < right.rawValue }

    package init(from reader: inout JSONReader) throws {
        self = try reader.oneOf()
    }

    package func write(to writer: inout JSONWriter) { writer.value(rawValue) }
}
