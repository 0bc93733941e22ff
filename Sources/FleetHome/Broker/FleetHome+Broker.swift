import FleetProtocol
import Glibc

extension FleetHome {
    /// The configuration to start Mosquitto with.
    package var brokerConfigurationPath: String { brokerFolder.path(of: "mosquitto.conf") }

    /// Tells a running broker to read its password and ACL files again (SIGHUP): only the process that the broker's pid
    /// file names, and only if that is a Mosquitto.
    @discardableResult
    package func reloadBroker() throws -> BrokerReload {
        guard let pid = runningBroker() else { return .notRunning }
        guard kill(pid, SIGHUP) == 0 else {
            if errno == ESRCH { return .notRunning }
            throw FleetHomeError(
                .unwritable, "telling the broker (process \(pid)) to read its files again failed: \(Folder.reason())",
                remedy: "send it a SIGHUP as the user it runs as")
        }
        return .signalled(pid: pid)
    }

    private func runningBroker() -> Int32? {
        guard let text = try? dataFolder.read("mosquitto.pid", limit: 64),
            let pid = Int32(String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace }), pid > 1,
            let name = try? Folder("/proc/\(pid)").read("comm", limit: 64)
        else { return nil }
        return String(decoding: name, as: UTF8.self).hasPrefix("mosquitto") ? pid : nil
    }

    /// Writes passwords and rights, and tells the broker.
    @discardableResult
    func updateBroker(_ change: (inout PasswordFile) throws -> Void) throws -> BrokerReload {
        var passwords = try passwordFile()
        try change(&passwords)
        try writeAccess()
        try brokerFolder.write(Array(passwords.text.utf8), to: "passwd", owner: try brokerOwner())
        return try reloadBroker()
    }

    func passwordFile() throws -> PasswordFile {
        guard brokerFolder.exists("passwd") else { return PasswordFile() }
        return PasswordFile(
            text: String(decoding: try brokerFolder.read("passwd", limit: 64 << 20), as: UTF8.self))
    }

    private func writeAccess() throws {
        let text = AccessFile(fleet: context.fleet, users: try users()).text
        try brokerFolder.write(Array(text.utf8), to: "acl", owner: try brokerOwner())
    }

    func writeBrokerConfiguration() throws {
        let owner = try brokerOwner()
        if let owner {
            // The broker's user must reach its files, and nothing else of the home.
            try folder.make(mode: 0o710, owner: (geteuid(), owner.gid))
            try brokerFolder.make(mode: 0o750, owner: (geteuid(), owner.gid))
        } else {
            try brokerFolder.make()
        }
        try dataFolder.make(owner: owner)
        let text = BrokerConfiguration(context: context, folder: brokerFolder.path, data: dataFolder.path).text
        try brokerFolder.write(
            Array(text.utf8), to: "mosquitto.conf", mode: owner == nil ? 0o600 : 0o640,
            owner: owner.map { (geteuid(), $0.gid) })
    }

    /// The user who must be able to read the broker's files; nil for the caller.
    private func brokerOwner() throws -> (uid: uid_t, gid: gid_t)? {
        guard Account.isRoot, let name = context.brokerUser else { return nil }
        let account = try Account(named: name)
        return (account.uid, account.gid)
    }
}
