/// What a device says about one policy of one app: what was received, what is in force, how the last attempt ended.
package struct PolicyReport: Hashable, Sendable {
    /// The document that decides, or nothing when the default does.
    package var source: Address?
    /// The revision of the deciding document; 0 for the default.
    package var received: Int64
    /// The revision that is in force; nil when none ever was.
    package var applied: Int64?
    package var attempt: Attempt

    package struct Attempt: Hashable, Sendable {
        package var revision: Int64
        package var outcome: Outcome
        /// In the app's or the agent's words.
        package var message: String?
        package var at: Timestamp

        package init(revision: Int64, outcome: Outcome, message: String? = nil, at: Timestamp) {
            self.revision = revision
            self.outcome = outcome
            self.message = message
            self.at = at
        }
    }

    package init(source: Address?, received: Int64, applied: Int64?, attempt: Attempt) {
        self.source = source
        self.received = received
        self.applied = applied
        self.attempt = attempt
    }
}

extension PolicyReport {
    static let defaultSource: StaticString = "default"

    init(from reader: inout JSONReader, in fleet: FleetID) throws {
        var source: Address??
        var received: Int64?
        var applied: Int64?
        var attempt: Attempt?
        try reader.object { name, value in
            switch name {
            case "source": source = .some(try value.word { try Self.source($0, in: fleet) })
            case "received": received = try value.integer()
            case "applied": if try !value.null() { applied = try value.integer() }
            case "attempt": attempt = try value.value()
            default: break
            }
        }
        self.source = try required(source, "source")
        self.received = try required(received, "received")
        self.applied = applied
        self.attempt = try required(attempt, "attempt")
    }

    private static func source(_ word: Word, in fleet: FleetID) throws -> Address? {
        if word == defaultSource { return nil }
        guard let address = Address(topic: word, in: fleet), case .desired = address else {
            throw FleetProtocolError(.value, "expected '\(defaultSource)' or the topic of a desired document")
        }
        return address
    }

    func write(to writer: inout JSONWriter, in fleet: FleetID) {
        writer.object { writer in
            writer.member("source") { writer in
                guard let source else { return writer.value(Self.defaultSource) }
                writer.value { source.append(to: &$0, in: fleet) }
            }
            writer.member("received", received)
            writer.member("applied", ifPresent: applied)
            writer.member("attempt", attempt)
        }
    }
}

extension PolicyReport.Attempt: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var revision: Int64?
        var outcome: Outcome?
        var at: Timestamp?
        var message: String?
        try reader.object { name, value in
            switch name {
            case "revision": revision = try value.integer()
            // A newer agent's: nothing that is final to this reader.
            case "outcome": outcome = try value.word { $0.named() ?? Outcome.pending }
            case "message": message = try value.message()
            case "at": at = try value.value()
            default: break
            }
        }
        self.init(
            revision: try required(revision, "revision"), outcome: try required(outcome, "outcome"),
            message: message, at: try required(at, "at"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("revision", revision)
            writer.member("outcome", outcome)
            writer.member("message", ifPresent: message)
            writer.member("at", at)
        }
    }
}
