import DeviceAgent
import FleetController
import FleetProtocol

/// What a device has to tell: each event that it has kept, which the controller will have.
struct EventWatch {
    typealias Key = FleetStore.StoredEvent

    /// Events that a transaction has kept: the controller will have them.
    var promised: [Key: KeptEvent] = [:]
    var sent: Set<Key> = []
    /// Every event that was ever kept: the controller has no others.
    private(set) var kept: Set<Key> = []
    /// Those that had to go for newer ones.
    private(set) var dropped: Set<Key> = []
    /// How many events of each app say that it is ready.
    private(set) var readies: [AppID: Int] = [:]
    /// Those that are kept now.
    private var waiting: [KeptEvent] = []
    private let maximum: Int
    /// The level that each app's changes have led to.
    private var levels: [AppID: LogLevel] = [:]
    /// Launches of which an event says that they were ready.
    private var readyLaunches: Set<RandomID> = []
    /// The launch of each app that the store names.
    private var storedLaunches: [AppID: RandomID] = [:]

    init(maximum: Int) { self.maximum = maximum }

    /// Of another device with this one's name: what the old one has said stays said.
    var ofNewDevice: EventWatch {
        var events = EventWatch(maximum: maximum)
        (events.kept, events.dropped) = (kept, dropped)
        return events
    }

    /// What an image has on it is to be told first, or goes first.
    mutating func goOn(with state: DeviceState) { waiting = state.events }

    /// It goes on with what somebody else has put on the disk.
    mutating func begin(on state: DeviceState) {
        levels = [:]
        for app in state.apps.values { levels[app.id] = app.logLevel }
        waiting = state.events
        kept = Set(waiting.map(Self.key))
    }

    /// A transaction stands, but for what a deliberate fault keeps from it. Returns what is wrong with what it tells.
    mutating func stored(_ changes: [StoreChange], but unstored: [StoreChange]) -> String? {
        var problem: String?
        var told: Set<AppID> = []
        for case .event(let event) in changes {
            if case .event(let said) = event.body, said.kind == .ready { told.insert(said.header.app) }
        }
        for change in changes + unstored {
            switch change {
            case .event(let event): problem = keep(event) ?? problem
            case .dropEvents(let boot, let through):
                waiting.removeAll { $0.header.boot == boot && $0.header.number <= through }
            case .dropEvent(let boot, let number): problem = drop(boot, number) ?? problem
            case .app(let app):
                // Where another launch comes in the same moment, the word may be of the one before.
                let isSame = storedLaunches.updateValue(app.launch, forKey: app.id) == app.launch
                guard isSame, told.contains(app.id) else { continue }
                if !readyLaunches.insert(app.launch).inserted { problem = "\(app.id) is told to be ready again" }
            default: break
            }
        }
        for case .app(let app) in changes where levels[app.id] ?? .status != app.logLevel {
            problem = "\(app.id) logs at \(app.logLevel), and no change to it is told"
        }
        return problem
    }

    private mutating func keep(_ event: KeptEvent) -> String? {
        let isNew = kept.insert(Self.key(event)).inserted
        if case .event(let said) = event.body, said.kind == .ready { readies[said.header.app, default: 0] += 1 }
        promised[Self.key(event)] = event
        waiting.append(event)
        guard isNew, case .logLevel(let change) = event.body else { return nil }
        let level = levels.updateValue(change.new, forKey: change.header.app) ?? .status
        return change.old == level ? nil : "a change from \(change.old) is told where \(level) was last"
    }

    /// There are too many: one goes, and of no boot the last while another has two. It is one that can be caused at will, of an
    /// app of which no other has more, while there are any.
    private mutating func drop(_ boot: Int64, _ number: Int64) -> String? {
        guard waiting.count > maximum else { return "event \(number) was dropped, and there was room" }
        guard let gone = waiting.first(where: { $0.header.boot == boot && $0.header.number == number }) else {
            return "event \(number) was dropped, and there was none"
        }
        let boots = Dictionary(grouping: waiting.map(\.header), by: \.boot)
        let mayGo = waiting.filter { $0.header.number < boots[$0.header.boot]?.map(\.number).max() ?? 0 }
        let counts = Dictionary(grouping: mayGo.filter(\.isExpectedAtWill), by: \.header.app).mapValues(\.count)
        waiting.removeAll { $0 == gone }
        dropped.insert(Self.key(gone))
        if !mayGo.isEmpty, !mayGo.contains(gone) {
            return "nothing is left to tell of event \(number) of boot \(boot), which was dropped"
        }
        guard let most = counts.values.max(), !gone.isExpectedAtWill || counts[gone.header.app] != most else {
            return nil
        }
        return "event \(number) was dropped, and others could have gone for it"
    }

    mutating func forgive(through incarnation: Int64) {
        promised = promised.filter { $0.key.incarnation > incarnation }
    }

    static func key(_ event: KeptEvent) -> Key {
        let header = event.header
        return Key(
            device: header.device, incarnation: header.incarnation, boot: header.boot, number: header.number)
    }
}
