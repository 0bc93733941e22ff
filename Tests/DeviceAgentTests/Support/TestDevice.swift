import DeviceAgent
import FleetProtocol
import TestSupport

/// One device with its core over a real store, a broker that is a dictionary, and apps that are scripts. Time stands
/// still unless it is moved.
struct TestDevice {
    var fleet: TestFleet
    let device: DeviceID
    let store: DeviceStore
    private(set) var core: DeviceCore
    var now = Now(wall: Timestamp(milliseconds: 1_800_000_000_000), uptime: 1_000_000, bootID: "boot-1")
    /// What the broker holds.
    var retained: [String: [UInt8]] = [:]
    /// Everything published since the last look, in order.
    var published: [(address: Address, payload: [UInt8])] = []
    /// Frames sent to apps since the last look.
    var frames: [AgentFrame] = []
    var keys: Set<AppID> = []
    /// Which key an app has, of all that were made.
    private var keyNumbers: [AppID: UInt8] = [:]
    private var keysMade: UInt8 = 0
    /// Key effects, stores and publishes in the order they were performed.
    var order: [String] = []
    var connection: RandomID?
    var subscriptions: [String] = []
    /// Whether the controller answers a presence.
    var isControllerThere = true
    /// The connections of apps that it has closed, in order.
    private(set) var closed: [LinkID] = []
    /// What it has told people, in order.
    private(set) var logged: [String] = []
    /// How often it has asked for another connection.
    private(set) var reconnects = 0
    /// What the broker has said and has not arrived yet, while it is slow.
    var underWay: [DeviceEvent]?
    /// Everything sent on each connection of an app, until it is taken.
    var sent: [LinkID: [AgentFrame]] = [:]
    /// Whether the agent comes to comparing a passcode.
    var arePasscodesChecked = true
    /// The last passcode that was to be compared.
    private(set) var check: PasscodeCheck?
    /// Whether the store is compared with the core after every event.
    var comparesStore = true
    private var links: Int64 = 0

    init(fleet: TestFleet? = nil, enrollment: Enrollment? = nil, store: DeviceStore? = nil) throws {
        self.fleet = try fleet ?? TestFleet()
        let enrolled = try enrollment ?? self.fleet.enrollment()
        device = enrolled.device
        self.store = try store ?? DeviceStore.inMemory()
        core = try DeviceCore(
            enrollment: enrolled, agentVersion: "fleet-agent/test", state: self.store.load(), secret: .random(),
            at: now)
        try settle()
    }

    /// The agent starts again from what it has stored.
    mutating func restart() throws {
        core = try DeviceCore(
            enrollment: core.enrollment, agentVersion: "fleet-agent/test", state: store.load(), secret: .random(),
            at: now)
        connection = nil
        subscriptions = []
        sent = [:]
        if underWay != nil { underWay = [] }
        try settle()
    }

    /// Handles what comes in one moment.
    mutating func handle(_ events: DeviceEvent...) throws {
        for event in events { core.handle(event, at: now) }
        try settle()
    }

    /// Lets `seconds` pass, by every clock.
    mutating func wait(_ seconds: Int64) throws {
        now.uptime += seconds * 1_000
        now.wall = now.wall.advanced(bySeconds: seconds)
        try handle(.tick)
    }

    // MARK: Broker

    mutating func connect() throws {
        let name = RandomID.random()
        connection = name
        subscriptions = []
        try handle(.connected(connection: name))
        try wait(1)
    }

    mutating func disconnect() throws {
        connection = nil
        if underWay != nil { underWay = [] }
        try handle(.disconnected)
    }

    /// Stores at the broker, and delivers when a subscription covers it.
    mutating func publish(_ address: Address, _ payload: [UInt8]) throws {
        let topic = address.topic(in: fleet.id)
        retained[topic] = payload
        if connection != nil, subscriptions.contains(where: { Self.matches($0, topic) }) {
            let event = DeviceEvent.message(topic: topic, payload: payload)
            if underWay != nil { underWay?.append(event) } else { try handle(event) }
        }
    }

    /// Lets the oldest of what is under way arrive.
    mutating func receiveNext() throws {
        guard let event = underWay?.first else { return }
        underWay?.removeFirst()
        try handle(event)
    }

    mutating func apply(_ layer: Layer, _ app: AppID, _ aspect: Aspect, _ content: DesiredDocument.Content) throws {
        let address = Address.desired(layer, app, aspect)
        try publish(address, try fleet.document(address, content))
    }

    mutating func say(_ address: Address, _ payload: [UInt8]) throws {
        try handle(.message(topic: address.topic(in: fleet.id), payload: payload))
    }

    private mutating func settle() throws {
        var pending = core.takeEffects(at: now)
        while !pending.isEmpty {
            var events: [DeviceEvent] = []
            for effect in pending { try perform(effect, &events) }
            if underWay != nil {
                underWay? += events
                events = []
            }
            for event in events { core.handle(event, at: now) }
            pending = core.takeEffects(at: now)
        }
        if comparesStore { try compareStore() }
    }

    /// What must survive a restart is what the store gives back.
    func compareStore() throws {
        let (kept, stored) = (core.state, try store.load())
        let marks = kept.marks.filter { $0.value.digest != nil || stored.marks[$0.key] != nil }
        for (isEqual, what) in [
            (kept.owner == stored.owner, "owner"), (kept.boot == stored.boot, "boot"),
            (kept.trust == stored.trust, "trust"), (kept.groups == stored.groups, "groups"),
            (kept.contact == stored.contact, "contact"), (core.signedDocuments == stored.documents, "documents"),
            (marks == stored.marks, "marks"), (kept.apps == stored.apps, "apps"),
            (kept.events == stored.events, "events"), (kept.passcode == stored.passcode, "passcode"),
        ] where !isEqual { throw TestFailure("the store does not hold the core's \(what)") }
    }

    private mutating func perform(_ effect: DeviceEffect, _ events: inout [DeviceEvent]) throws {
        switch effect {
        case .destroyKeys(let app):
            keys.remove(app)
            order.append("destroy \(app)")
        case .createKeys(let app):
            guard keys.insert(app).inserted else { break }
            keysMade += 1
            keyNumbers[app] = keysMade
        case .store(let changes):
            try store.apply(changes)
            order.append("store")
        case .subscribe(let filters, let barrier):
            let texts = filters.map { $0.text(in: fleet.id) }
            subscriptions += texts
            for (topic, payload) in retained where texts.contains(where: { Self.matches($0, topic) }) {
                events.append(.message(topic: topic, payload: payload))
            }
            events.append(.subscribed(barrier: barrier))
        case .unsubscribe(let filters):
            let texts = filters.map { $0.text(in: fleet.id) }
            subscriptions.removeAll { texts.contains($0) }
        case .report(let status): try perform(.publish(status.address, status.wire, retain: true), &events)
        case .publish(let address, let payload, let retain):
            published.append((address, payload))
            order.append("publish \(address.path)")
            if retain { retained[address.topic(in: fleet.id)] = payload }
            if case .barrier = address {
                events.append(.message(topic: address.topic(in: fleet.id), payload: payload))
            }
            if case .presence(.device) = address, isControllerThere,
                let presence = try? Presence(json: payload, limit: Presence.maximumSize), presence.state == .online
            {
                let hello = try fleet.hello(device, presence.connection)
                events.append(.message(topic: Address.hello(device).topic(in: fleet.id), payload: hello))
            }
        case .send(let link, let frame):
            frames.append(frame)
            sent[link, default: []].append(frame)
        case .sendKeys(let link, let app):
            guard keys.contains(app) else { throw TestFailure("\(app) is given keys, and has none") }
            try perform(.send(link, .keys(key(of: app))), &events)
        case .reconnect: reconnects += 1
        case .close(let link): closed.append(link)
        case .log(let entry): logged.append(entry.message)
        case .display: break
        case .checkCode(let check, let text, let code):
            events.append(.codeChecked(check, isRight: try code.isOf(text)))
        case .checkPasscode(let check, let text, let hash, let new):
            self.check = check
            guard arePasscodesChecked else { break }
            let isRight = hash.map { $0 == text.map(Self.hash) } ?? true
            events.append(.passcodeChecked(check, isRight ? .right(new: new.map(Self.hash)) : .wrong))
        }
    }

    static func matches(_ filter: String, _ topic: String) -> Bool {
        let parts = filter.split(separator: "/", omittingEmptySubsequences: false)
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if part == "#" { return true }
            guard index < levels.count, part == "+" || part == levels[index] else { return false }
        }
        return parts.count == levels.count
    }

    // MARK: Apps

    @discardableResult
    mutating func launch(
        _ app: AppID, install: RandomID = .random(), launch: RandomID = .random(),
        implements: Set<Callback> = Set(Callback.allCases), resume: Registration.Resume? = nil
    ) throws -> LinkID {
        links += 1
        let link = LinkID(links)
        try handle(
            .registered(
                link,
                Registration(
                    app: app, install: install, launch: launch, sdk: "test/1", implements: implements,
                    resume: resume)))
        return link
    }

    /// Answers everything that was sent since the last look as a well-behaved app does, until nothing more comes.
    /// Returns what it was told.
    @discardableResult
    mutating func answer(_ link: LinkID, _ state: PolicyState? = .applied) throws -> [Delivery] {
        var told: [Delivery] = []
        while !frames.isEmpty {
            let sent = frames
            frames = []
            for frame in sent {
                switch frame {
                case .ready: try handle(.frame(link, .ready))
                case .deliver(let number, let delivery):
                    told.append(delivery)
                    try handle(.frame(link, .delivered(number)))
                    guard case .policy(let value, _) = delivery, value.policy.isAcknowledgedByApp, let state else {
                        continue
                    }
                    try handle(
                        .frame(
                            link, .acknowledge(Acknowledgement(delivery: number, policy: value.policy, state: state))))
                case .welcome, .refused, .displayed, .activity, .codeResult, .kept, .keys, .autoLock, .passcodeResult,
                    .copied,
                    .pasted:
                    break
                }
            }
        }
        return told
    }

    /// In place of a hash that takes its time.
    static func hash(_ passcode: String) -> CodeHash {
        CodeHash(salt: Array(repeating: 1, count: 8), hash: Digest(of: Array(passcode.utf8)).bytes, n: 2, r: 1, p: 1)
    }

    /// A person asks something of the passcode, on a connection of its own. Returns the answer, if there is one.
    @discardableResult
    mutating func ask(_ request: PasscodeRequest) throws -> PasscodeResult? {
        links += 1
        let link = LinkID(links)
        try handle(.frame(link, .passcode(request)))
        for case .passcodeResult(let result) in sent[link] ?? [] { return result }
        return nil
    }

    /// The keys that an app has now, as its process is given them.
    func key(of app: AppID) -> AppKeys {
        AppKeys(
            app: Array(repeating: keyNumbers[app] ?? 0, count: AppKeys.size),
            shared: Array(repeating: 255, count: AppKeys.size))
    }

    func status(_ app: AppID) throws -> Status {
        guard let status = core.status(of: app, at: now) else { throw TestFailure("\(app) has no status") }
        return status
    }

    /// What the broker holds as the status of `app`.
    func reported(_ app: AppID) throws -> Status {
        let topic = Address.reply(device, app, .status).topic(in: fleet.id)
        guard let wire = retained[topic] else { throw TestFailure("no status of \(app) was published") }
        return try Status(wire: wire, fleet: fleet.id, device: device, app: app)
    }
}

let mail = AppID(unchecked: "com.example.mail")
let notes = AppID(unchecked: "com.example.notes")
