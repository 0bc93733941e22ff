import FleetProtocol

extension Folder {
    /// Reads a JSON file of ours; an error names the file and the member, and what helps where it is missing, or damaged.
    func value<Value: JSONReadable>(
        _ type: Value.Type = Value.self, in name: String, remedy: String? = nil,
        ifDamaged damageRemedy: String = FleetHomeError.restoreFile
    ) throws -> Value {
        let bytes = try read(name, limit: 256 * 1_024, remedy: remedy)
        do {
            return try Value(json: bytes, limit: bytes.count)
        } catch let error as FleetProtocolError where error.code == .version {
            throw FleetHomeError(
                .newerVersion, "\(path(of: name)): \(error)", remedy: "use the build that wrote it, or a newer one")
        } catch let error as FleetProtocolError {
            throw FleetHomeError(
                .malformed, "\(path(of: name)): \(error)", remedy: damageRemedy)
        }
    }

    /// Writes one JSON value and a line end.
    func write(
        _ value: some JSONWritable, to name: String, mode: UInt32 = 0o600, owner: (uid: UInt32, gid: UInt32)? = nil
    ) throws {
        try write(value.json + [UInt8(ascii: "\n")], to: name, mode: mode, owner: owner)
    }
}
