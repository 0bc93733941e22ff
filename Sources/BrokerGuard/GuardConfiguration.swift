package import FleetProtocol

/// Which fleet the guard stands for: the `plugin_opt_…` lines of Mosquitto's configuration. None of it changes while the
/// fleet lives.
package struct GuardConfiguration: Hashable, Sendable {
    package let fleet: FleetID
    package let uuid: RandomID
    /// Signs the documents that say which keys count.
    package let root: VerifyingKey

    package init(fleet: FleetID, uuid: RandomID, root: VerifyingKey) {
        self.fleet = fleet
        self.uuid = uuid
        self.root = root
    }

    /// Reads the options, by their names without `plugin_opt_`. Throws for one that is missing, unknown or malformed.
    package init(options: [(name: String, value: String)]) throws {
        var fleet: FleetID?
        var uuid: RandomID?
        var root: VerifyingKey?
        for (name, value) in options {
            switch name {
            case "fleet": fleet = try FleetID(checking: value)
            case "uuid":
                guard let id = RandomID(value) else {
                    throw FleetProtocolError(.value, "expected a UUID in lower case", at: "plugin_opt_uuid")
                }
                uuid = id
            case "root_key":
                guard let bytes = Base64URL.decode(value.utf8), let key = try? VerifyingKey(bytes: bytes) else {
                    throw FleetProtocolError(
                        .value, "expected an Ed25519 public key in base64url", at: "plugin_opt_root_key")
                }
                root = key
            default:
                throw FleetProtocolError(
                    .value, "the guard has no option plugin_opt_\(Text.printable(name, limit: 40))")
            }
        }
        self.init(
            fleet: try required(fleet, "plugin_opt_fleet"), uuid: try required(uuid, "plugin_opt_uuid"),
            root: try required(root, "plugin_opt_root_key"))
    }

    /// The options that ``init(options:)`` reads.
    package var options: [(name: String, value: String)] {
        [("fleet", fleet.text), ("uuid", uuid.text), ("root_key", Base64URL.encode(root.bytes))]
    }
}
