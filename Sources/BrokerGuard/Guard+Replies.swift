import FleetProtocol

extension Guard {
    /// A device's messages are of the kinds that there are, of their size, and its own.
    mutating func checkDevice(_ message: Message, _ client: Client) throws {
        let path = try known(path(of: message.topic))
        let name = try known(PackedName(client.user))
        switch Address(path: path) {
        case .reply(_, let app, .status)?:
            try message.checkKept(limit: Status.maximumSize)
            try checkOwner(message, client, app)
            guard devices[name, default: KnownDevice()].apps.admit(app) else {
                throw FleetProtocolError(.tooLarge, "statuses of more than \(Presence.maximumApps) apps")
            }
        case .reply(_, let app, .event)?, .reply(_, let app, .logLevel)?:
            try message.checkFleeting(limit: AppEvent.maximumSize)
            try checkOwner(message, client, app)
        case .presence?:
            try message.checkKept(limit: Presence.maximumSize)
            try message.checkObject()
        case .barrier?:
            try message.checkFleeting(limit: Self.longestMarker)
        default:
            throw FleetProtocolError(.mismatch, "no device says anything there")
        }
    }

    /// What the table of rights has seen already.
    func known<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw FleetProtocolError(.mismatch, "it may not publish there") }
        return value
    }

    /// What a reply says of itself must be what its topic says. It is read so far as is needed for that, and not to its end:
    /// that would cost the broker a third of what it spends on a status altogether, and its readers do it anyway.
    private func checkOwner(_ message: Message, _ client: Client, _ app: AppID) throws {
        struct Enough: Error {}
        var device: String?
        var named: String?
        do {
            try JSONReader.read(message.payload, limit: Status.maximumSize) { reader in
                try reader.object { name, value in
                    switch name {
                    case "device": device = try value.string()
                    case "app": named = try value.string()
                    default: try value.skip()
                    }
                    if device != nil, named != nil { throw Enough() }
                }
            }
        } catch is Enough {}
        // By bytes: to Swift, texts are equal that are written differently.
        guard try required(device, "device").utf8.elementsEqual(client.user) else {
            throw FleetProtocolError(.mismatch, "it speaks for another device", at: "device")
        }
        guard try required(named, "app").utf8.elementsEqual(app.text.utf8) else {
            throw FleetProtocolError(.mismatch, "it speaks for another app than its topic", at: "app")
        }
    }
}

extension Guard.Message {
    /// What is state is retained, and never empty: that would clear it.
    func checkKept(limit: Int) throws {
        guard isRetained else { throw FleetProtocolError(.mismatch, "what is state must be retained") }
        guard !payload.isEmpty else { throw FleetProtocolError(.mismatch, "only the controller clears it") }
        try checkSize(limit)
    }

    /// What is said once must not be retained: it would be said again to everyone who comes.
    func checkFleeting(limit: Int) throws {
        guard !isRetained else { throw FleetProtocolError(.mismatch, "what is said once must not be retained") }
        try checkSize(limit)
    }

    private func checkSize(_ limit: Int) throws {
        guard payload.count <= limit else {
            throw FleetProtocolError(.tooLarge, "\(payload.count) bytes, where at most \(limit) are allowed")
        }
    }

    func checkObject() throws {
        try JSONReader.read(payload, limit: payload.count) { reader in try reader.object { _, _ in } }
    }
}
