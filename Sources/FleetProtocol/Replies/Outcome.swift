/// How the last attempt to put a revision in force ended.
package enum Outcome: String, CaseIterable, Hashable, Sendable, JSONCodable {
    /// The app is not running, or the callback has not returned yet.
    case pending
    /// The callback has returned, and the app has not said how it went.
    case delivered
    case applied
    case error
    case unsupported
    /// The agent could not apply a verified document.
    case rejected
    /// A log level that waits for a person to enter the debug code.
    case awaitingCode
    /// A log level whose time is over.
    case expired

    package init(from reader: inout JSONReader) throws {
        self = try reader.oneOf()
    }

    package func write(to writer: inout JSONWriter) { writer.value(rawValue) }
}

extension PolicyState {
    package var outcome: Outcome {
        switch self {
        case .unsupported: .unsupported
        case .applied: .applied
        case .error: .error
        }
    }
}
