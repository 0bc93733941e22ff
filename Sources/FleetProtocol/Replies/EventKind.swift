/// What something that the controller has stored tells of: an event, by its ``AppEvent/Kind``, or a change of a log level.
package enum EventKind: String, CaseIterable, Hashable, Sendable, JSONCodable {
    case blocked, ready, wiped, locked, unlocked, refused
    case logLevel
    /// What only a newer agent knows.
    case unknown

    package init(_ kind: AppEvent.Kind) {
        self =
            switch kind {
            case .blocked: .blocked
            case .ready: .ready
            case .wiped: .wiped
            case .locked: .locked
            case .unlocked: .unlocked
            case .refused: .refused
            }
    }

    package init(from reader: inout JSONReader) throws { self = try reader.oneOf() }
    package func write(to writer: inout JSONWriter) { writer.value(rawValue) }
}
