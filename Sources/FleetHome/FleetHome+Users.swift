package import FleetProtocol

extension FleetHome {
    /// Everyone with a password of theirs in this folder: the controller, operators, viewers, bridges.
    package func users() throws -> [User] { try credentialFolder.names().compactMap { User($0) } }

    /// The password of someone who is no device.
    package func credentials(for user: User) throws -> Credentials {
        try FleetHome.checkSecrecy(of: credentialFolder.path(of: user.text))
        let credentials: Credentials = try credentialFolder.value(
            in: user.text, remedy: Self.remedy(for: user))
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
        case .controller, .bridge, .device: FleetHomeError.restoreFile
        }
    }

    /// Gives someone who is no device a new password, and rights at the broker.
    ///
    /// - Returns: The file that holds the password, which belongs to whom this folder belongs to, and whether the broker
    ///   was told.
    @discardableResult
    package func addUser(_ user: User) throws -> (file: String, reload: BrokerReload) {
        if case .device(let id) = user {
            throw FleetHomeError(
                .unknownUser, "\(id) is a device", remedy: "devices are enrolled: `fleetctl enroll device`")
        }
        return try changing {
            try checkBroker()
            let credentials = Credentials.random(for: user)
            try credentialFolder.write(credentials, to: user.text)
            let reload = try updateBroker { try $0.set(credentials) }
            return (file: credentialFolder.path(of: user.text), reload: reload)
        }
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
