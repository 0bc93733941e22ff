import FleetProtocol

/// What a device that is removed was the last to say, for the history: what else it said is forgotten with it.
struct LastWords: JSONWritable {
    let incarnation: Int64
    let groups: [GroupID]
    let apps: [Status]
    /// When the controller stored that an app's keys were destroyed, the newest time of each.
    let wipedAt: [AppID: Timestamp]
    /// Apps whose keys may be on an earlier disk, of which it said nothing any more.
    let leftKeys: [AppID]
    /// Whether a copy of its disk was heard, which may have all that it has said to be gone.
    let isCopied: Bool

    /// To be read before any of it is forgotten.
    init(of device: DeviceID, as incarnation: Int64, _ transaction: FleetStore.Transaction, in fleet: FleetID) throws {
        self.incarnation = incarnation
        groups = try transaction.groups(of: device)
        apps = try transaction.statuses(in: fleet, app: nil, device: device, after: 0, limit: Presence.maximumApps)
            .map(\.status).sorted { $0.app < $1.app }
        wipedAt = try transaction.wipes(of: device)
        leftKeys = try transaction.keysInDoubt(of: device)
        isCopied = try transaction.device(device)?.isCopied ?? false
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("incarnation", incarnation)
            writer.member("groups", groups)
            writer.member("apps") { writer in
                writer.array { writer in
                    for status in apps {
                        writer.object { writer in
                            writer.member("app", status.app)
                            writer.member("at", status.at)
                            writer.member("auth", status.authState)
                            writer.member("keys", status.keys.rawValue)
                            writer.member("wipedAt", ifPresent: wipedAt[status.app])
                        }
                    }
                }
            }
            if !leftKeys.isEmpty { writer.member("leftKeys", leftKeys) }
            if isCopied { writer.member("copied", true) }
        }
    }
}
