import FleetController
import FleetProtocol

/// The controller's client of the broker.
extension Controller {
    func connect() {
        guard let running, connection == nil else { return }
        guard !isStalled else { return retry() }
        let random = RandomID.random(using: &world.noise)
        let will = ControllerCore.will(
            random, of: world.fleet.identities[renewals], startedAt: running.startedAt)
        guard let made = world.broker.connect(self, will: (will.topic, will.payload)) else { return retry() }
        (connection, connectionName) = (made, random)
        world.broker.welcome(made) { [unowned self] in
            guard connection === made else { return }
            world.say(name, "is connected")
            handle(.connected(random))
        }
    }

    private func retry() {
        world.after(world.noise.milliseconds(50...1_000)) { [unowned self] in connect() }
    }

    func cut(noticedAfter delay: Int64) {
        guard let connection else { return }
        world.broker.cut(connection, noticedAfter: delay)
        lost(connection)
    }

    func connected(_ connection: Connection) {}
    func subscribed(_ token: Int64, on connection: Connection) {}
    func refused(on connection: Connection) {
        guard connection === self.connection else { return }
        checkLeaves(connection)
        if world.fault != .refusalsIgnored { handle(.refused) }
    }

    /// What was refused is said again on another connection: the first time in a run, a minute later.
    private func checkLeaves(_ connection: Connection) {
        guard let running, refusedRun != runs else { return }
        refusedRun = runs
        let time = world.now
        world.after(125_000) { [unowned self] in
            guard self.running === running, self.connection === connection, isPunctual, !isStalled, wentOnAt < time
            else { return }
            world.fail(.ends, "the broker has refused something, and it is not said again on another connection")
        }
    }

    func lost(_ connection: Connection) {
        guard connection === self.connection else { return }
        self.connection = nil
        inbox = []
        handle(.disconnected)
        retry()
    }

    func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, on connection: Connection) {
        guard connection === self.connection else { return }
        watch.received(topic, payload, isRetained: isRetained, at: world.now)
        layers.received(topic, at: world.now)
        noteRequest(topic, payload)
        guard let message = altered(ControllerCore.Message(topic: topic, payload: payload, isRetained: isRetained))
        else { return }
        inbox.append(message)
        guard !isWorkDue else { return }
        isWorkDue = true
        world.after(world.isCalm ? 5 : world.noise.milliseconds(0...20)) { [unowned self] in
            isWorkDue = false
            if !isStalled { read() }
        }
    }

    func read() {
        let messages = inbox
        inbox = []
        if !messages.isEmpty { handle(.messages(messages)) }
    }
}
