package import FleetProtocol
import Glibc

extension FleetHome {
    /// The configuration to start Mosquitto with.
    package var brokerConfigurationPath: String { brokerFolder.path(of: Self.configurationName) }
    private static let configurationName = "mosquitto.conf"

    /// Tells a running broker to read its password and ACL files again (SIGHUP).
    @discardableResult
    package func reloadBroker() throws -> BrokerReload {
        var told: [Int32] = []
        var failure: (any Error)?
        // Whatever one of them is, the others hear of it.
        for pid in runningBrokers() {
            do {
                if try tellToReload(pid) { told.append(pid) }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return told.isEmpty ? .notRunning : .signalled(pids: told)
    }

    /// False where it has ended meanwhile.
    private func tellToReload(_ pid: Int32) throws -> Bool {
        try waitUntilStarted(pid)
        guard kill(pid, SIGHUP) != 0 else { return true }
        guard errno != ESRCH else { return false }
        throw FleetHomeError(
            .unwritable, "telling the broker (process \(pid)) to read its files again failed: \(Folder.reason())",
            remedy: "send it a SIGHUP as the user it runs as")
    }

    /// A home that was copied has a configuration with which the broker reads the passwords of the other one: nothing that is
    /// changed here would reach it.
    private func checkNamesPasswords() throws {
        let word = "password_file "
        guard let text = try? brokerFolder.read(Self.configurationName, limit: 1 << 20),
            let line = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline)
                .first(where: { $0.hasPrefix(word) })
        else { return }
        let (named, own) = (String(line.dropFirst(word.count)), brokerFolder.path(of: Self.passwordName))
        guard !Folder.isSame(named, own) else { return }
        throw FleetHomeError(
            .malformed, "\(brokerConfigurationPath) names the passwords in \(named), and not those in \(own)",
            remedy: "run `fleetctl broker configure`, start the broker again, and repeat this")
    }

    /// A Mosquitto that has yet to read its database would be ended by the signal: it names its process before it handles
    /// that.
    private func waitUntilStarted(_ pid: Int32) throws {
        for _ in 0..<1_000 {
            guard Self.isEndedByHangup(pid) else { return }
            usleep(10_000)
        }
        throw FleetHomeError(
            .unwritable, "the broker (process \(pid)) has been starting for 10 s, and cannot be told to read its files",
            remedy: "send it a SIGHUP when it has started")
    }

    private static func isEndedByHangup(_ pid: Int32) -> Bool {
        let text = (try? Folder("/proc/\(pid)").read("status", limit: 1 << 16)) ?? []
        let status = String(decoding: text, as: UTF8.self)
        func field(_ name: String) -> String? {
            let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
            return line.map { trimmed(Array($0.dropFirst(name.count).utf8)) }
        }
        guard let handled = field("SigCgt:").flatMap({ UInt64($0, radix: 16) }) else { return false }
        // One that has ended and was not waited for handles nothing any more.
        return handled >> UInt64(SIGHUP - 1) & 1 == 0 && field("State:")?.first != "Z"
    }

    /// Every Mosquitto that the broker's pid file names or that was started with the home's configuration: the pid file
    /// of a broker that started on a full disk is empty, and it would go on to accept passwords that are no more.
    private func runningBrokers() -> [Int32] {
        let named = (try? dataFolder.read("mosquitto.pid", limit: 64)).flatMap { Int32(Self.trimmed($0)) }
        let processes = ((try? Folder("/proc").names()) ?? []).compactMap(Int32.init).filter { $0 > 1 }
        // Other people's programs may call themselves what they like.
        let owners: Set<uid_t> = Set([0, geteuid()] + [Folder.owner(of: dataFolder.path)].compactMap { $0 })
        return processes.filter { pid in
            let process = Folder("/proc/\(pid)")
            guard let owner = Folder.owner(of: process.path), owners.contains(owner) else { return false }
            guard let name = try? process.read("comm", limit: 64), Self.trimmed(name) == "mosquitto" else {
                return false
            }
            return pid == named || isConfigured(process)
        }
    }

    private func isConfigured(_ process: Folder) -> Bool {
        let arguments = (try? process.read("cmdline", limit: 1 << 20))?.split(separator: 0) ?? []
        return arguments.contains { bytes in
            let argument = String(decoding: bytes, as: UTF8.self)
            return Folder.isSame(
                argument.hasPrefix("/") ? argument : process.path(of: "cwd/" + argument), brokerConfigurationPath)
        }
    }

    private static func trimmed(_ text: [UInt8]) -> String {
        String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace }
    }

    /// Writes passwords and rights, and tells the broker. `leaving` has none from now on.
    @discardableResult
    func updateBroker(
        without leaving: User? = nil, _ change: (inout PasswordFile) throws -> Void
    ) throws -> BrokerReload {
        let owner = try brokerOwner()
        var passwords = try passwordFile()
        try checkNamesPasswords()
        try change(&passwords)
        try brokerFolder.write(Array(try access(without: leaving).text.utf8), to: "acl", owner: owner)
        try write(passwords, for: owner)
        return try reloadBroker()
    }

    /// What would keep the broker from being told is said before anything is changed.
    func checkBroker() throws {
        _ = try brokerOwner()
        _ = try passwordFile()
        try checkNamesPasswords()
    }

    /// Not there is not empty: written anew with one user, it would take the passwords of all others away.
    func passwordFile() throws -> PasswordFile {
        let text = try brokerFolder.read(
            Self.passwordName, limit: 64 << 20,
            remedy: FleetHomeError.restoreFile
                + "; without one, `fleetctl broker configure` makes it anew, and all devices are"
                + " enrolled again")
        return PasswordFile(text: String(decoding: text, as: UTF8.self))
    }

    func write(_ passwords: PasswordFile) throws { try write(passwords, for: try brokerOwner()) }

    private func write(_ passwords: PasswordFile, for owner: (uid: uid_t, gid: gid_t)?) throws {
        try brokerFolder.write(Array(passwords.text.utf8), to: Self.passwordName, owner: owner)
    }

    private static let passwordName = "passwd"

    /// The folders that the broker needs, with the rights that it needs. What is in them stays.
    func makeBrokerFolder() throws {
        let owner = try brokerOwner()
        if let owner {
            // The broker's user must reach its files, and nothing else of the home.
            try folder.make(mode: 0o710, owner: (geteuid(), owner.gid))
            try brokerFolder.make(mode: 0o750, owner: (geteuid(), owner.gid))
        } else {
            try brokerFolder.make()
        }
        try dataFolder.make(owner: owner)
    }

    /// Writes the broker's configuration anew, for its next start, and makes those of its folders that are missing, as in a
    /// home that was put back from a backup. What stood there before is kept beside it, with `.old` behind its name.
    ///
    /// - Parameter guardLibrary: As with ``create(at:fleet:host:port:listen:brokerUser:tls:guardLibrary:)``.
    /// - Returns: The devices that are to be enrolled again: the file of passwords was lost, and has those of people and of the
    ///   controller alone now.
    @discardableResult
    package mutating func configureBroker(guardLibrary: String?) throws -> [DeviceID] {
        var home = self
        var lost: [DeviceID] = []
        let library = try guardLibrary.map { try GuardLibrary(reading: $0) }
        try changing {
            try home.makeBrokerFolder()
            // What is there may be another user's, as whom the broker ran on another machine.
            if brokerFolder.exists(Self.passwordName) {
                try write(passwordFile())
            } else {
                try writePasswords()
                lost = try devices().map(\.device)
            }
            try writeAccess()
            home.context.guardLibrary = try library.map(home.install)
            try home.writeBrokerConfiguration()
            try home.folder.write(home.context, to: "fleet.json")
        }
        self = home
        return lost
    }

    private func writePasswords() throws {
        var passwords = PasswordFile()
        for user in try users() { try passwords.set(credentials(for: user)) }
        try write(passwords)
    }

    private func writeAccess() throws {
        try brokerFolder.write(Array(try access().text.utf8), to: "acl", owner: try brokerOwner())
    }

    private func access(without leaving: User? = nil) throws -> AccessFile {
        AccessFile(fleet: context.fleet, users: try users().filter { $0 != leaving })
    }

    func writeBrokerConfiguration() throws {
        let owner = try brokerOwner()
        let text = BrokerConfiguration(
            context: context, root: try rootKey().publicKey, folder: brokerFolder.path, data: dataFolder.path
        ).text
        func write(_ bytes: [UInt8], to name: String) throws {
            try brokerFolder.write(
                bytes, to: name, mode: owner == nil ? 0o600 : 0o640, owner: owner.map { (geteuid(), $0.gid) })
        }
        let name = Self.configurationName
        if brokerFolder.exists(name) {
            let old = try brokerFolder.read(name, limit: 1 << 20)
            if old != Array(text.utf8) { try write(old, to: name + ".old") }
        }
        // Also where nothing differs: it may be another user's, who has come with the broker on this machine.
        try write(Array(text.utf8), to: name)
    }

    /// Puts the guard where the broker can load it.
    ///
    /// - Returns: Its path for the broker's configuration.
    func install(_ library: GuardLibrary) throws -> String {
        // The broker's user may not be able to enter the folder of the caller's that it was built in.
        guard let owner = try brokerOwner(), owner.uid != geteuid() else { return library.path }
        let name = "guard.so"
        try brokerFolder.write(library.bytes, to: name, mode: 0o640, owner: (geteuid(), owner.gid))
        return brokerFolder.path(of: name)
    }

    /// The user who must be able to read the broker's files; nil for the caller.
    private func brokerOwner() throws -> (uid: uid_t, gid: gid_t)? {
        guard Account.isRoot, let name = context.brokerUser else { return nil }
        let account = try Account(named: name)
        return (account.uid, account.gid)
    }
}
