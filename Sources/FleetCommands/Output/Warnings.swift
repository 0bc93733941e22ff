import FleetProtocol

/// What the controller wants to be known besides its answer.
enum Warnings {
    static func show(in body: JSONValue) {
        for warning in body["warnings"]?.arrayValue ?? [] {
            Terminal.note("warning: \(Text.printable(warning.stringValue ?? ""))")
        }
    }
}
