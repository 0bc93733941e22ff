/// The body of `plan`: a change of which is asked what it would do, `{"verb":"apply","body":{…}}`.
package struct PlanRequest: Hashable, Sendable {
    /// One that ``Verb/canBePlanned``.
    package let verb: Verb
    /// As in a request of that verb.
    package let body: JSONValue

    package init(verb: Verb, body: JSONValue) {
        self.verb = verb
        self.body = body
    }
}

extension PlanRequest: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var verb: Verb?
        var body: JSONValue?
        try reader.object { name, value in
            switch name {
            case "verb": verb = try value.oneOf()
            case "body": body = try value.value()
            default: break
            }
        }
        self.init(verb: try required(verb, "verb"), body: try required(body, "body"))
        guard self.verb.canBePlanned else {
            let known = Verb.allCases.filter(\.canBePlanned).map(\.rawValue).joined(separator: ", ")
            throw FleetProtocolError(.value, "\(self.verb.rawValue) cannot be planned: expected \(known)", at: "verb")
        }
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("verb", verb.rawValue)
            writer.member("body", body)
        }
    }
}

/// The answer to `plan`: what the change would do, were it made now.
package struct Plan: Hashable, Sendable {
    /// What would be published, in that order.
    package var documents: [PlannedDocument]
    package let warnings: [String]
    /// The counts that would move at once, before any device has followed.
    package var moves: [PlannedMove]
    /// How many of them an answer had no room for.
    package private(set) var documentsLeftOut: Int64 = 0
    package private(set) var movesLeftOut: Int64 = 0

    package init(documents: [PlannedDocument], warnings: [String], moves: [PlannedMove]) {
        self.documents = documents
        self.warnings = warnings
        self.moves = moves
    }

    /// Leaves out what does not fit into so many bytes, half of them for each list.
    package mutating func fit(into size: Int) {
        documentsLeftOut += Self.fit(&documents, into: size / 2)
        movesLeftOut += Self.fit(&moves, into: size / 2)
    }

    private static func fit(_ values: inout [some JSONWritable], into size: Int) -> Int64 {
        var left = size
        let end = values.firstIndex { value in
            left -= value.json.count + 1
            return left < 0
        }
        guard let end else { return 0 }
        defer { values.removeSubrange(end...) }
        return Int64(values.count - end)
    }
}

extension Plan: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var documents: [PlannedDocument]?
        var warnings: [String] = []
        var moves: [PlannedMove]?
        var documentsLeftOut: Int64 = 0
        var movesLeftOut: Int64 = 0
        try reader.object { name, value in
            switch name {
            case "documents": documents = try value.values(limit: 100_000)
            case "documentsLeftOut": documentsLeftOut = try value.integer()
            case "warnings": try value.array { warnings.append(try $0.message(limit: 2_000)) }
            case "moves": moves = try value.values(limit: 100_000)
            case "movesLeftOut": movesLeftOut = try value.integer()
            default: break
            }
        }
        self.init(
            documents: try required(documents, "documents"), warnings: warnings, moves: try required(moves, "moves"))
        self.documentsLeftOut = documentsLeftOut
        self.movesLeftOut = movesLeftOut
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("documents", documents)
            writer.member("documentsLeftOut", documentsLeftOut)
            writer.member("warnings", warnings)
            writer.member("moves", moves)
            writer.member("movesLeftOut", movesLeftOut)
        }
    }
}

/// A document that would be published, as the history would tell of it.
package struct PlannedDocument: Hashable, Sendable, JSONCodable {
    /// An app, `_group` or `_device`.
    package let app: String
    package let target: String
    package let aspect: String
    /// nil where there is none, or it is deleted.
    package let old: JSONValue?
    /// nil where it would be deleted.
    package let new: JSONValue?

    package init(app: String, target: String, aspect: String, old: JSONValue?, new: JSONValue?) {
        self.app = app
        self.target = target
        self.aspect = aspect
        self.old = old
        self.new = new
    }

    package init(from reader: inout JSONReader) throws {
        var app: String?
        var target: String?
        var aspect: String?
        var old: JSONValue?
        var new: JSONValue?
        try reader.object { name, value in
            switch name {
            case "app": app = try value.message(limit: 100)
            case "target": target = try value.message(limit: 100)
            case "aspect": aspect = try value.message(limit: 100)
            case "old": old = try value.value()
            case "new": new = try value.value()
            default: break
            }
        }
        self.init(
            app: try required(app, "app"), target: try required(target, "target"),
            aspect: try required(aspect, "aspect"), old: old, new: new)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("target", target)
            writer.member("aspect", aspect)
            writer.member("old", ifPresent: old)
            writer.member("new", ifPresent: new)
        }
    }
}

/// A row of `status` that would be another.
package struct PlannedMove: Hashable, Sendable, JSONCodable {
    package let before: StatusRow
    package let after: StatusRow

    package init(before: StatusRow, after: StatusRow) {
        self.before = before
        self.after = after
    }

    package init(from reader: inout JSONReader) throws {
        var before: StatusRow?
        var after: StatusRow?
        try reader.object { name, value in
            switch name {
            case "before": before = try value.value()
            case "after": after = try value.value()
            default: break
            }
        }
        self.init(before: try required(before, "before"), after: try required(after, "after"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("before", before)
            writer.member("after", after)
        }
    }
}
