import FleetProtocol

/// What the controller wants to be known besides its answer.
enum Warnings {
    static func show(in body: JSONValue) {
        for warning in body["warnings"]?.arrayValue ?? [] { show(warning.stringValue ?? "") }
    }

    static func show(_ text: String) { Terminal.note("warning: \(Text.printable(text))") }
}
