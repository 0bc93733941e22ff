import DeviceAgent
import FleetProtocol
import Testing

@Suite("What processes are given of their apps' keys")
struct KeyTests {
    /// What a connection was told of keys, and of what depends on them, in this order.
    private func told(_ device: TestDevice, _ link: LinkID) -> [String] {
        (device.sent[link] ?? []).compactMap { frame in
            switch frame {
            case .keys(let keys?): keys == device.key(of: mail) ? "keys" : "other keys"
            case .keys(nil): "no keys"
            case .ready(let properties): "ready, \(properties.availability)"
            case .deliver(_, .availability(let availability)): "\(availability)"
            case .deliver(_, .policy(.auth(let state, _), _)): "\(state)"
            default: nil
            }
        }
    }

    @Test("keys come before the word that there are some, and go before the word that there are none")
    func order() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.answer(link)
        #expect(told(device, link) == ["keys", "ready, available", "available", "authorized"])
        try device.apply(.all, mail, .auth, .auth(.unauthorized))
        try device.answer(link)
        #expect(told(device, link).suffix(3) == ["no keys", "unauthorized", "unavailable"])
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.answer(link)
        #expect(told(device, link).suffix(3) == ["keys", "available", "authorized"], "a gain comes last")
    }

    @Test("keys go at once, whatever the app is called for")
    func atOnce() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        // It is called for its first deliveries, and returns from none.
        try device.handle(.frame(link, .ready))
        try device.apply(.all, mail, .auth, .auth(.retired))
        #expect(told(device, link) == ["keys", "ready, available", "available", "authorized", "no keys"])
    }

    @Test("an app that is retired and authorized in one moment has the new keys, and not those that are gone")
    func renewed() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.answer(link)
        let before = device.key(of: mail)
        let address = Address.desired(.all, mail, .auth)
        let topic = address.topic(in: device.fleet.id)
        let (retired, authorized) = (
            try device.fleet.document(address, .auth(.retired)), try device.fleet.document(address, .auth(.authorized))
        )
        try device.handle(
            .message(topic: topic, payload: retired), .message(topic: topic, payload: authorized))
        #expect(device.key(of: mail) != before)
        #expect(try device.status(mail).authState == .authorized)
        #expect(told(device, link).suffix(3) == ["no keys", "retired", "unavailable"])
        try device.answer(link)
        #expect(device.sent[link]?.contains(.keys(device.key(of: mail))) == true)
        #expect(Set(told(device, link).suffix(3)) == ["keys", "available", "authorized"])
    }

    @Test("an app that is called for an authorization while that ends, and another one comes, hears of both")
    func renewedWhileCalled() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        try device.answer(link)
        try device.apply(.all, mail, .auth, .auth(.retired))
        try device.answer(link)
        // It returns from none of these.
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let called = told(device, link)
        try device.apply(.all, mail, .auth, .auth(.retired))
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.answer(link)
        let later = told(device, link).dropFirst(called.count)
        #expect(Set(called.suffix(3)) == ["keys", "available", "authorized"])
        #expect(later.contains("retired") && later.contains("available"))
        #expect(later.firstIndex(of: "retired") ?? .max < later.firstIndex(of: "authorized") ?? 0)
    }

    @Test("a process that comes back to another agent is told what it may have, whatever it had")
    func comesBack() throws {
        var device = try TestDevice()
        try device.connect()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        try device.answer(device.launch(mail))
        for (state, expected) in [(AuthState.authorized, "keys"), (.unauthorized, "no keys")] {
            try device.apply(.all, mail, .auth, .auth(state))
            try device.restart()
            let link = try device.launch(mail, resume: .init())
            #expect(told(device, link).first == expected)
            try device.connect()
        }
        let link = try device.launch(notes)
        #expect(!told(device, link).contains("no keys"), "one that has just begun has none")
    }

    @Test("there are none before anything is certain, and while secure services are locked")
    func unavailable() throws {
        var device = try TestDevice()
        try device.apply(.all, mail, .auth, .auth(.authorized))
        let link = try device.launch(mail)
        #expect(told(device, link).isEmpty)
        try device.connect()
        try device.answer(link)
        #expect(told(device, link).first == "keys")
        var locked = SecureServicesValue()
        locked.isLocked = true
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(locked))))
        try device.answer(link)
        #expect(told(device, link).suffix(2) == ["no keys", "unavailable"])
    }
}
