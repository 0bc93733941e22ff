import DeviceAgent
import FleetProtocol

/// What an agent's store keeps, as a value: each transaction whole or not at all. In some worlds the real store runs beside
/// it, and must keep the same.
struct DeviceDisk {
    private(set) var state = DeviceState()
    /// Which of its keys an app has; nil when they are destroyed.
    var keys: [AppID: Int] = [:]
    private var real: DeviceStore?

    init(isReal: Bool) { if isReal { real = try? DeviceStore.inMemory() } }

    mutating func apply(_ changes: [StoreChange]) throws {
        for change in changes { apply(change) }
        try real?.apply(changes)
    }

    /// Another time's state, with a fresh store.
    mutating func replace(by other: DeviceDisk) {
        self = other
        real = nil
    }

    /// Why the real store differs, if it does; where there is none, what an app's record is read as.
    func difference() throws -> String? {
        guard let kept = try real?.load() else {
            let differs = try state.apps.values.first { try AppRecord(json: $0.json, limit: .max) != $0 }
            return differs.map { "app \($0.id), as its text is read" }
        }
        if kept.highest != state.highest { return "highest" }
        if kept.contact != state.contact { return "contact" }
        if kept.running != state.running { return "running time" }
        return difference(from: kept)
    }

    /// In what another state differs, but for times, which are stored now and then.
    func difference(from other: DeviceState) -> String? {
        if other.boot != state.boot { return "boot \(other.boot), not \(state.boot)" }
        if other.disk != state.disk { return "disk \(other.disk), not \(state.disk)" }
        if other.groups != state.groups { return "groups" }
        if other.trust != state.trust { return "trust" }
        if other.documents != state.documents { return "documents" }
        if other.marks != state.marks { return "marks" }
        if other.events != state.events { return "events" }
        if other.passcode != state.passcode { return "passcode" }
        for app in state.apps.values where other.apps[app.id] != app { return "app \(app.id)" }
        return other.apps.count == state.apps.count ? nil : "apps"
    }

    private mutating func apply(_ change: StoreChange) {
        switch change {
        case .started(let boot, let disk, let owner):
            state.boot = boot
            state.disk = disk
            state.owner = owner
        case .trust(let wire): state.trust = wire
        case .groups(let groups): state.groups = groups
        case .clock(let running, let contact, let highest):
            state.running = running
            state.contact = contact
            state.highest = highest
        case .document(let address, let wire): state.documents[address] = wire
        case .mark(let address, let mark): state.marks[address] = mark
        case .app(let record): state.apps[record.id] = record
        case .passcode(let passcode): state.passcode = passcode
        case .event(let event): state.events.append(event)
        case .dropEvents(let boot, let through):
            state.events.removeAll { $0.header.boot == boot && $0.header.number <= through }
        case .dropEvent(let boot, let number):
            state.events.removeAll { $0.header.boot == boot && $0.header.number == number }
        }
    }
}
