import FleetProtocol

extension JSONValue {
    /// The value as a type of the bus; what the controller sends and this build cannot read is an error of the two.
    func decoded<Value: JSONReadable>(_ type: Value.Type = Value.self) throws -> Value {
        let bytes = json
        do {
            return try Value(json: bytes, limit: bytes.count)
        } catch {
            throw CommandError(.unreachable, "an answer that this build cannot read: \(error)")
        }
    }
}
