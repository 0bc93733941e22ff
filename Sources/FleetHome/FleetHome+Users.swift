package import FleetProtocol

extension FleetHome {
    /// Everyone with a password of theirs in this folder: the controller, operators, viewers, bridges.
    package func users() throws -> [User] { try credentialFolder.names().compactMap { User($0) } }

    /// The password of someone who is no device.
    package func credentials(for user: User) throws -> Credentials {
        try FleetHome.checkSecrecy(of: credentialFolder.path(of: user.text))
        let credentials: Credentials = try credentialFolder.value(
            in: user.text, remedy: Self.remedy(for: user), ifDamaged: Self.remedy(for: user))
        guard credentials.user == user else {
            throw FleetHomeError(
                .malformed, "\(credentialFolder.path(of: user.text)): user: these are credentials of another user")
        }
        return credentials
    }

    private static func remedy(for user: User) -> String {
        switch user {
        case .operator(let name): "give \(user.text) a password with `fleetctl user add \(name)`"
        case .viewer(let name): "give \(user.text) a password with `fleetctl user add \(name) --viewer`"
        case .controller: "give it another password with `fleetctl user add \(user.text)`, and start it again"
        case .bridge, .device: FleetHomeError.restoreFile
        }
    }

    /// Gives someone who is no device a new password, and rights at the broker.
    ///
    /// - Parameter path: A folder to make for the person: with what it takes to reach the fleet as this user, and none of the
    ///   fleet's keys. It may be carried to another machine.
    /// - Returns: The file that holds the password, which belongs to whom this folder belongs to, and whether the broker
    ///   was told.
    @discardableResult
    package func addUser(_ user: User, folder path: String? = nil) throws -> (file: String, reload: BrokerReload) {
        if case .device(let id) = user {
            throw FleetHomeError(
                .unknownUser, "\(id) is a device", remedy: "devices are enrolled: `fleetctl enroll device`")
        }
        let authority = try path == nil ? nil : brokerAuthority()
        return try changing {
            try checkBroker()
            // The folder first: if it cannot be made, a user who is there keeps the password.
            let folder = try path.map { try personFolder($0, of: user) }
            let credentials = Credentials.random(for: user)
            if let folder {
                var files = FileBatch()
                try files.write(credentials, to: user.text, in: folder.folder(Self.credentialName))
                if let authority { try files.write(authority, to: Self.authorityName, in: folder, mode: 0o644) }
                let context = context.context(of: user, authority: authority.map { _ in Self.authorityName })
                try files.write(context, to: "fleet.json", in: folder)
                try files.commit()
            }
            try credentialFolder.write(credentials, to: user.text)
            let reload = try updateBroker { try $0.set(credentials) }
            return (file: (folder ?? self.folder).folder(Self.credentialName).path(of: user.text), reload: reload)
        }
    }

    /// Makes a person's folder, or takes the one that was made for the same person.
    private func personFolder(_ path: String, of user: User) throws -> Folder {
        let folder = Folder(path)
        guard !folder.isInside(self.folder) else {
            throw FleetHomeError(
                .exists, "\(folder.path) is inside the fleet's folder",
                remedy: "choose a folder elsewhere: it goes to the person, and the fleet's folder to nobody")
        }
        try Self.checkOwner(of: folder, remedy: "choose a folder of your own, and hand that over")
        let context: HomeContext? = try? folder.value(in: "fleet.json")
        let isOurs = context.map { $0.holder == user && $0.uuid == self.context.uuid }
        // One that was cut short has no fleet.json yet.
        let names = try folder.names(isHiddenToo: true).filter {
            ![Self.credentialName, Self.authorityName].contains($0) && !$0.hasPrefix(".fleet.json.")
                && !$0.hasPrefix(".\(Self.authorityName).")
        }
        guard isOurs ?? names.isEmpty else {
            throw FleetHomeError(
                .exists,
                "\(folder.path) is "
                    + (context?.holder.map { "the folder of \($0.text)" } ?? "not empty: \(names.first ?? "") is in it"),
                remedy: "choose a folder that is empty, or not there yet")
        }
        let credentials = folder.folder(Self.credentialName)
        for folder in [folder, credentials] {
            try folder.make()
            folder.removeLeftovers()
        }
        return folder
    }

    /// Takes a user's password and rights away; the broker ends its connections. Whatever ends it half-way, it can be
    /// repeated.
    @discardableResult
    package func removeUser(_ user: User) throws -> BrokerReload {
        guard user != .controller else {
            throw FleetHomeError(.unknownUser, "the controller cannot be removed from its fleet")
        }
        return try changing {
            guard try users().contains(user) || passwordFile().contains(user) else {
                throw FleetHomeError(.unknownUser, "the fleet has no user \(user.text)")
            }
            let reload = try updateBroker(without: user) { $0.remove(user) }
            try credentialFolder.remove(user.text)
            return reload
        }
    }
}
