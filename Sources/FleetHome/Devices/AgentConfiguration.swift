import FleetProtocol

/// The `agent.json` of a device: all that its agent must know but the password. Relative paths start at its folder.
struct AgentConfiguration: JSONWritable {
    let context: HomeContext
    let record: DeviceRecord
    let rootKey: VerifyingKey
    let floors: Floors

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("device", record.device)
            writer.member("fleet", context.fleet)
            writer.member("fleetUUID", context.uuid)
            writer.member("incarnation", record.incarnation)
            writer.member("broker") { writer in
                writer.object { writer in
                    writer.member("host", context.host)
                    writer.member("port", Int64(context.port))
                    if context.tls != nil {
                        writer.member("tls") { $0.object { $0.member("ca", "ca.pem") } }
                    }
                }
            }
            writer.member("rootKey", Binary(rootKey.bytes))
            writer.member("credentials", "credentials.json")
            writer.member("state", "state")
            writer.member("apps", "apps.d")
            writer.member("socket", "agent.sock")
            floors.writeMembers(to: &writer)
            writer.member("displayCommand") { $0.null() }
        }
    }
}
