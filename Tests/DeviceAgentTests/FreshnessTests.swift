import FleetProtocol
import Testing

@testable import DeviceAgent

@Suite("What was kept back is no fresh contact")
struct FreshnessTests {
    private func connected() throws -> (device: TestDevice, connection: RandomID) {
        var device = try TestDevice()
        device.isControllerThere = false
        let connection = RandomID.random()
        device.connection = connection
        try device.handle(.connected(connection: connection))
        return (device, connection)
    }

    /// A device that was greeted on its connection, and hears what the test says.
    private func greeted() throws -> (device: TestDevice, connection: RandomID) {
        var (device, connection) = try connected()
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(age(of: device) == 0)
        device.published = []
        return (device, connection)
    }

    /// Seconds that the last contact is ago, by the running time.
    private func age(of device: TestDevice) -> Int64? {
        device.core.state.contact.map { (device.core.state.running.total - $0.running) / 1_000 }
    }

    private func nonces(_ device: TestDevice) throws -> [RandomID] {
        try device.published.filter { $0.address == .presence(.device(device.device)) }.compactMap {
            try Presence(json: $0.payload, limit: Presence.maximumSize).nonce
        }
    }

    /// A heartbeat of so many seconds after the controller's last word.
    private func heartbeat(_ device: inout TestDevice, after seconds: Int64) throws -> [UInt8] {
        device.fleet.time = device.fleet.time.advanced(bySeconds: seconds - 1)
        return try device.fleet.heartbeat()
    }

    @Test("a heartbeat counts from when it was signed, by both clocks, and half a minute is no delay")
    func lateHeartbeat() throws {
        var (device, _) = try greeted()
        for _ in 0..<3 {
            let heartbeat = try heartbeat(&device, after: 60)
            try device.wait(90)
            try device.say(.heartbeat, heartbeat)
            #expect(age(of: device) == 0)
            // The next one comes as soon after this as it was signed.
            device.fleet.time = device.fleet.time.advanced(bySeconds: 30)
        }
        #expect(try nonces(device).isEmpty)
        let heartbeat = try heartbeat(&device, after: 60)
        try device.wait(13 * 3_600)
        try device.say(.heartbeat, heartbeat)
        #expect(age(of: device) == 46_710)
        let contact = try #require(device.core.state.contact)
        #expect(device.now.wall.milliseconds - contact.wall.milliseconds == 46_710_000)
    }

    @Test("what comes late has another nonce said, and a hello that answers it is fresh")
    func answered() throws {
        var (device, connection) = try greeted()
        let heartbeat = try heartbeat(&device, after: 60)
        try device.wait(600)
        try device.say(.heartbeat, heartbeat)
        // Not all who hear it at one moment ask at one moment.
        try device.wait(5)
        let nonce = try #require(try nonces(device).last)
        #expect(nonce != connection)
        // What answers the connection alone may have been signed before.
        device.fleet.time = device.fleet.time.advanced(bySeconds: 60)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(age(of: device) == 454)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection, nonce: nonce))
        #expect(age(of: device) == 0)
        try device.wait(60)
        try device.say(.heartbeat, self.heartbeat(&device, after: 60))
        #expect(age(of: device) == 0)
        #expect(Set(try nonces(device)) == [nonce])
    }

    @Test("a hello that waited is as old as the connection; nobody knows the next nonce before it is said")
    func lateHello() throws {
        var (device, connection) = try connected()
        let hello = try device.fleet.hello(device.device, connection)
        try device.wait(7_201)
        device.published = []
        try device.say(.hello(device.device), hello)
        #expect(age(of: device) == 7_171)
        try device.wait(5)
        let first = try nonces(device)
        #expect(first.count == 1)
        // Without an answer it is asked again, ever more rarely, however many words come.
        for _ in 0..<180 {
            try device.say(.heartbeat, heartbeat(&device, after: 1))
            try device.wait(10)
        }
        let all = try nonces(device)
        #expect(Set(all).count == 7)
        // On a slow link the answer to an earlier one comes behind it.
        let early = try #require(all.dropLast().last { $0 != all.last })
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection, nonce: early))
        let late = try #require(age(of: device))
        #expect(late > 400 && late < 1_200)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection, nonce: all.last))
        #expect(try #require(age(of: device)) < late)
        var again = try TestDevice(fleet: device.fleet)
        again.isControllerThere = false
        try again.handle(.connected(connection: connection))
        try again.wait(7_201)
        try again.say(.hello(again.device), again.fleet.hello(again.device, connection))
        try again.wait(5)
        #expect(try !nonces(again).isEmpty)
        #expect(try Set(nonces(again)).isDisjoint(with: all))
    }

    @Test("what a controller of before nonces says counts when it is heard")
    func olderController() throws {
        var (device, connection) = try greeted()
        func older(_ wire: [UInt8]) throws -> [UInt8] {
            let said = try Hello(json: SignedDocument(wire: wire).payload, limit: SignedDocument.maximumSize)
            let hello = Hello(
                clock: said.clock, device: said.device, connection: said.connection, nonce: nil, received: nil)
            return try SignedDocument(signing: hello.json, as: .hello, with: device.fleet.signing).wire
        }
        let hello = try older(device.fleet.hello(device.device, connection))
        try device.wait(3_600)
        try device.say(.hello(device.device), hello)
        #expect(age(of: device) == 0)
        try device.wait(3_600)
        try device.say(.heartbeat, heartbeat(&device, after: 60))
        #expect(age(of: device) == 0)
        #expect(try nonces(device).isEmpty)
    }

    @Test("a controller whose clock is set is asked once, and what is kept back afterwards counts as old as it is")
    func clockSet() throws {
        var (device, connection) = try greeted()
        // Forward: what was kept back over just that would look the same.
        try device.wait(60)
        try device.say(.heartbeat, heartbeat(&device, after: 3_660))
        #expect(age(of: device) == 60)
        try device.wait(5)
        let first = try #require(try nonces(device).last)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection, nonce: first))
        #expect(age(of: device) == 0)
        let kept = try heartbeat(&device, after: 60)
        try device.wait(1_000)
        try device.say(.heartbeat, kept)
        #expect(age(of: device) == 910)
        try device.wait(5)
        // Back: in a new epoch, whose times may be any.
        device.fleet.epoch = 2
        device.fleet.time = device.fleet.time.advanced(bySeconds: -86_400)
        let nonce = try #require(try nonces(device).last)
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection, nonce: nonce))
        #expect(age(of: device) == 0)
        try device.wait(60)
        try device.say(.heartbeat, heartbeat(&device, after: 60))
        #expect(age(of: device) == 0)
        #expect(Set(try nonces(device)) == [first, nonce])
    }

    @Test("a controller that does not know any more which times it has signed is heard by what it answers, once")
    func forgottenTimes() throws {
        var (device, connection) = try greeted()
        try device.wait(60)
        let kept = try heartbeat(&device, after: 60)
        device.fleet.time = device.fleet.time.advanced(bySeconds: -86_400)
        try device.say(.heartbeat, heartbeat(&device, after: 60))
        // It was said before: somebody may have kept it.
        try device.say(.hello(device.device), device.fleet.hello(device.device, connection))
        #expect(age(of: device) == 60)
        try device.wait(5)
        let nonce = try #require(try nonces(device).last)
        let hello = try device.fleet.hello(device.device, connection, nonce: nonce)
        try device.wait(1)
        try device.say(.hello(device.device), hello)
        #expect(age(of: device) == 0)
        // What it had signed before, a day ahead, is no word of now.
        try device.wait(100)
        try device.say(.heartbeat, kept)
        try device.say(.hello(device.device), hello)
        #expect(age(of: device) == 100)
        try device.say(.heartbeat, heartbeat(&device, after: 100))
        #expect(age(of: device) == 0)
    }
}
