import FleetProtocol

/// A document in `policies`.
struct PolicyRow: JSONWritable {
    let document: StoredDocument

    func write(to writer: inout JSONWriter) {
        guard let place = DocumentPlace(document.address) else { return writer.null() }
        writer.object { writer in
            writer.member("app", place.app)
            writer.member("target", place.layer)
            writer.member("aspect", place.aspect)
            writer.member("epoch", document.revision.epoch)
            writer.member("revision", document.revision.number)
            writer.member("change", document.change.number)
            writer.member("issuedAt", document.issuedAt)
            writer.member("by", document.by)
            writer.member("why", ifPresent: document.why)
            writer.member("value", ifPresent: document.value.map(StoredJSON.init))
        }
    }
}

extension HistoryEntry: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("revision", revision)
            writer.member("at", at)
            writer.member("by", by)
            writer.member("why", ifPresent: why)
            writer.member("app", app)
            writer.member("target", target)
            writer.member("aspect", aspect)
            writer.member("old", ifPresent: old.map(StoredJSON.init))
            writer.member("new", ifPresent: new.map(StoredJSON.init))
        }
    }
}

/// A value that the store keeps as JSON text.
private struct StoredJSON: JSONWritable {
    let text: String

    func write(to writer: inout JSONWriter) {
        let value = try? JSONValue(json: Array(text.utf8), limit: SignedDocument.maximumSize)
        (value ?? .null).write(to: &writer)
    }
}
