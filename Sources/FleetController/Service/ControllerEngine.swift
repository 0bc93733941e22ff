import FleetHome
import FleetProtocol
import Mosquitto

/// The core with its clock, on a thread of its own: one event after the other.
actor ControllerEngine {
    private let executor = QueueExecutor(label: "fleet-controller")
    private let home: FleetHome
    private let outbox: Outbox
    private let store: FleetStore
    private var core: ControllerCore
    private let usage: ProcessUsage
    private let begun = ContinuousClock.now
    /// The connection that events come from.
    private var connection = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated var fleet: FleetID { home.context.fleet }
    /// The will of the newest connection.
    nonisolated let will: Will

    /// - Parameter lock: Says whether there has been a database already, and how far it had come.
    init(
        home: FleetHome, lock: HomeLock, isRestoring: Bool, disregarded: Set<DeviceID>, eventLife: Int64?,
        outbox: Outbox
    ) throws {
        self.home = home
        self.outbox = outbox
        usage = ProcessUsage(databasePath: home.databasePath)
        let identity = try FleetIdentity(
            fleetID: home.context.fleet, fleet: home.context.uuid, signingKey: home.signingKey(),
            trustWire: home.trust().wire, rootKey: home.rootKey().publicKey)
        store = try FleetStore(path: home.databasePath, isExpected: lock.hasDatabase && !isRestoring)
        try store.verifyDocuments(for: identity)
        // Should they not be readable, that is said when they are asked for.
        let startedAt = Timestamp.now
        will = Will(identity, startedAt)
        core = try ControllerCore(
            store: store, identity: identity,
            noted: lock.databasePosition.flatMap { StorePosition($0) },
            enrolments: (try? Self.enrolments(home)) ?? [:], isRestoring: isRestoring,
            disregarded: disregarded, startedAt: startedAt, eventLife: eventLife)
    }

    func connected(number: Int) {
        connection = number
        handle(.connected(will.name))
    }

    func disconnected() { handle(.disconnected) }

    func tick() { handle(.tick) }

    /// The broker has refused something that was said on that connection.
    func refused(on connection: Int) {
        if connection == self.connection { handle(.refused) }
    }

    /// Takes in messages of the present connection; an earlier one's will be read again, or sent again.
    func receive(_ messages: [Mosquitto.Message]) {
        let messages = messages.filter { $0.connection == connection }.map {
            ControllerCore.Message(topic: $0.topic, payload: $0.payload, isRetained: $0.retained)
        }
        if !messages.isEmpty { handle(.messages(messages)) }
    }

    /// At once: whoever removes a device changes the home first, so what is read here is newer than all that was asked for before.
    func readEnrolments() throws { handle(.enrolments(try Self.enrolments(home))) }

    func metrics() throws -> [Metric] { try core.metrics(at: .now) + usage.metrics }

    private static func enrolments(_ home: FleetHome) throws -> [DeviceID: Int64] {
        Dictionary(try home.devices().map { ($0.device, $0.incarnation) }) { $1 }
    }

    func close() throws { try store.close() }

    private func handle(_ event: ControllerCore.Event) {
        let uptime = (ContinuousClock.now - begun) / .milliseconds(1)
        outbox.put(core.handle(event, at: .now, uptime: Int64(uptime)), for: connection)
    }
}
