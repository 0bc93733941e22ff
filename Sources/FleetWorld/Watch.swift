import AppConnect
import DeviceAgent
import FleetController
import FleetProtocol

/// What somebody beside a device has seen of it: what the laws are about.
struct Watch {
    /// What has come from the broker, and so may be certain.
    var bus = BusWatch()
    var events: EventWatch
    var newest: [Followed: Int64] = [:]
    /// When each document that came was changed.
    var changes: [Address: Revision] = [:]
    /// Each app's record as its core last wanted it stored.
    var records = AppRecords()
    var orders: [AppID: ReportOrder] = [:]
    var isPresenceSaid = false
    /// What a deliberate fault keeps from the store: it was promised all the same.
    var unstored: [StoreChange] = []
    /// What the controller has never said.
    var forged: Set<[UInt8]> = []
    /// Of that, what is signed for another fleet.
    var foreign: Set<[UInt8]> = []
    /// Documents that were signed by no key which this device trusts, or will.
    var unsigned: Set<[UInt8]> = []
    /// What this run of its agent has refused last, as its log says.
    var refusals: [String] = []
    /// Markers that were published.
    var markers: Set<[UInt8]> = []
    var keys: [AppID: Int] = [:]
    /// Of each app's policies, the newest revision that could be applied, by their indices.
    var applicable: [AppID: [Int64]] = [:]
    /// When a process was refused as each app, and that was told, by this run.
    var refusedAt: [AppID: Int64] = [:]
    /// Apps that get keys in this moment.
    var isMakingKeys: Set<AppID> = []
    /// The version that the device has stored.
    private(set) var trust: Int64 = 0
    /// One thing alone has happened in this moment.
    var isAlone = true
    /// Apps for which the right code has been typed; and those for which it is in this moment.
    var codes: Set<AppID> = []
    /// The documents that have come, by where they did.
    private var came: [Address: Set<[UInt8]>] = [:]
    var codesTyped: Set<AppID> = []
    /// Apps of which a process was refused, and none has been ready since.
    private(set) var disputed: Set<AppID> = []
    /// Apps whose limits came more than once in this moment: one that was replaced at once may have counted in between.
    var limitsReplaced: Set<AppID> = []
    /// What each app has been shown: what it has, or will have when nothing is lost.
    var shown: [AppID: AppProperties] = [:]
    /// What every auth document that came says, by app and by when it was changed.
    private(set) var authorizations: [AppID: [Revision: AuthState]] = [:]
    /// What those say that retire it.
    private(set) var retirements: [AppID: Set<String>] = [:]
    var conversations: [AppID: Conversation] = [:]
    /// Which app has each connection on the link, and which launch of it.
    var links: [Int64: AppID] = [:]
    var launches: [Int64: RandomID] = [:]
    /// Which keys the process at a connection has been given there; none where it may still have some from before.
    var given: [Int64: Int?] = [:]
    /// The first of these.
    var firstGiven: [Int64: Int] = [:]
    /// What apps have asked for, and the device has stored; and what it is to store next.
    private(set) var requests: Set<Request> = []
    var taking: Set<Request> = []
    /// The newest status that has reached the broker, by topic.
    var arrived: [String: ReportOrder] = [:]

    /// Since when each app's offline limits are what they are, or the app is not retired any more.
    var limitsSince: [AppID: Int64] = [:]

    /// The newest that was accepted at each address.
    var accepted: [Address: Revision] = [:]
    /// The highest revision that was stored, or that the controller has named before this moment.
    private(set) var highest = Revision.zero
    private var named = Revision.zero
    /// The latest epoch of a document that is stored.
    var epoch: Int64 = 0
    /// Apps that say in this moment what they think of a policy.
    var answering: Set<AppID> = []
    var passcode = PasscodeWatch(wrong: 0)
    var pasteboard = PasteboardWatch()
    var shownDocuments = ShownDocuments()
    /// Of these, for which policies.
    private(set) var answers = Answers()
    var wishes = LevelWishes()
    /// Of each document that came, by its revision, the policies for which it names all authorized apps.
    var lists: [Address: [Int64: Set<Policy>]] = [:]
    var levelTimes = LevelTimes()

    /// In this moment: by how many milliseconds what was heard counts as earlier.
    private(set) var lag: Int64?
    /// What was heard.
    private(set) var words: [ControllerClock] = []
    var isInContact: Bool { lag != nil }
    /// What the core has noted as its last one.
    var noted: DeviceAgent.Contact?
    /// By the running time, and the time that was certainly lost from it at reboots; nil before the first.
    private(set) var contact: Contact?
    /// How long the device has run in the boots before this one.
    private(set) var earlierBoots: Int64
    private(set) var lostTime: Int64 = 0
    private var savedAt: Int64 = 0

    struct Request: Hashable {
        let launch: RandomID
        let number: Int64
    }

    struct Contact {
        var running: Int64
        var wall: Timestamp
        var lost: Int64
    }

    init(_ events: EventWatch, earlierBoots: Int64 = 0) {
        self.events = events
        self.earlierBoots = earlierBoots
    }

    /// Of another device with this one's name: what the old one has said stays said.
    var ofNewDevice: Watch {
        var watch = Watch(events.ofNewDevice)
        watch.arrived = arrived
        watch.orders = orders
        return watch
    }

    /// What an image has on it is to be told first, or goes first, and counts.
    mutating func goOn(with state: DeviceState) {
        events.goOn(with: state)
        passcode = PasscodeWatch(wrong: state.passcode.wrong)
    }

    /// It goes on with what somebody else has put on the disk.
    mutating func begin(on state: DeviceState) {
        events.begin(on: state)
        conversations = [:]
        for app in state.apps.values { conversations[app.id] = Conversation(app) }
        passcode = PasscodeWatch(wrong: state.passcode.wrong)
        for (address, wire) in state.documents {
            guard let document = try? DesiredDocument(wire: wire)
            else { continue }
            wishes.note(document, at: address)
        }
        for app in state.apps.values {
            requests.formUnion((0..<app.kept).map { Request(launch: app.launch, number: $0 + 1) })
            for (address, clock) in app.levelClocks {
                levelTimes.receive(clock.change, at: address, running: nil)
                guard clock.isCodeAccepted else { continue }
                codes.insert(app.id)
                wishes.type(LevelWishes.Key(app: app.id, address: address, change: clock.change))
            }
        }
        wishes.stored()
    }

    /// A transaction stands. Returns what is wrong with what it tells.
    mutating func stored(_ changes: [StoreChange], at time: Int64) -> String? {
        let problem = events.stored(changes, but: unstored)
        for case .clock in changes + unstored { savedAt = time }
        for app in conversations.keys { conversations[app]?.stored() }
        passcode.stored()
        wishes.stored()
        requests.formUnion(taking)
        taking = []
        unstored = []
        return problem
    }

    /// The machine goes down: of the running time, what was not saved is lost.
    mutating func boots(after uptime: Int64) {
        earlierBoots += uptime
        lostTime += max(0, earlierBoots - savedAt)
        savedAt = earlierBoots
    }

    /// What was decided in a moment has been done, and stored.
    mutating func performed(at running: Int64, _ wall: Timestamp, _ trust: Int64) {
        self.trust = trust
        highest = max(highest, named)
        let now = contactNow(at: running, wall)
        lag = nil
        guard let now else { return }
        if let contact, now.running - now.lost < contact.running - contact.lost { return }
        contact = now
    }

    /// What is heard in this moment is contact of when it counts from.
    func contactNow(at running: Int64, _ wall: Timestamp) -> Contact? {
        lag.map { lag in
            Contact(
                running: running - lag, wall: Timestamp(milliseconds: wall.milliseconds - lag), lost: lostTime)
        }
    }

    mutating func heard(_ revision: Revision) { highest = max(highest, revision) }

    /// How long, in milliseconds of running time, there has been no contact: at most, and as far as the device knows.
    func apart(_ contact: Contact, at running: Int64) -> (most: Int64, known: Int64) {
        let most = running - contact.running
        return (most, most - (lostTime - contact.lost))
    }

    mutating func noteAuthorization(_ address: Address, _ wire: [UInt8]) {
        guard case .desired(_, let app, .auth) = address, let document = try? DesiredDocument(wire: wire),
            case .aspect(let value) = document.content, value.problems.isEmpty,
            case .auth(let state, let message) = value.content
        else { return }
        authorizations[app, default: [:]][document.change] = state
        if state == .retired { retirements[app, default: []].insert(message) }
    }

    /// Whether that counts in this moment.
    func isTaking(_ number: Int64?, on link: LinkID) -> Bool {
        guard let number, let launch = launches[link.number] else { return true }
        return taking.contains(Request(launch: launch, number: number))
    }

    /// What apps answer in this moment, before it is looked at.
    mutating func noteAnswers(_ events: [DeviceEvent]) { answers = Answers(events, links, conversations) }

    mutating func forgetUnstored() {
        for app in conversations.keys { conversations[app]?.forgetUnstored() }
        wishes.forgetUnstored()
    }

    /// The agent dies before it has done these, and has stored that it does.
    mutating func unsaid(_ effects: ArraySlice<DeviceEffect>) {
        for case .send(let link, let frame) in effects {
            if let app = links[link.number] { conversations[app]?.mayHaveSent(frame) }
        }
    }

    /// The core has looked at something that an app said.
    mutating func looked(at event: DeviceEvent) {
        switch event {
        case .registered(let link, let registration): heard(.register(registration), on: link)
        case .frame(let link, let frame): heard(frame, on: link)
        case .linkClosed(let link):
            if let app = links[link.number] { conversations[app]?.ended() }
        default: break
        }
    }

    /// A process that calls itself an app while another one still counts: which of them was ready, nobody knows.
    mutating func refused(_ link: LinkID) {
        if let app = links.removeValue(forKey: link.number) { disputed.insert(app) }
    }

    private mutating func heard(_ frame: AppFrame, on link: LinkID) {
        if case .ready = frame, let app = links[link.number] { disputed.remove(app) }
        if let app = links[link.number] { conversations[app, default: Conversation()].hears(frame) }
    }

    /// What an app says of what it has.
    mutating func noted(_ frame: AppFrame, of app: AppProcess) {
        switch frame {
        case .register:
            // One that has retired itself meanwhile takes nothing before it has said so.
            shown[app.id] = app.session?.properties.authReason == .selfRetired ? nil : app.session?.properties
        case .retire:
            shown[app.id] = AppProperties.expectedInitial
            shown[app.id]?[.auth] = .auth(.retired, message: "")
        default: break
        }
    }

    /// A policy keeps the stricter value of an older document until a newer one is certain, and another one moves on.
    struct Followed: Hashable {
        let source: Address
        let policy: Policy
    }

    mutating func connected(_ name: RandomID) {
        disconnected()
        bus.connected(name)
    }

    mutating func disconnected() {
        bus.disconnected()
        shownDocuments.disconnected()
        isPresenceSaid = false
        lag = nil
    }

    /// With what it had yet to look at.
    mutating func died() {
        disconnected()
        bus.died()
        named = highest
        answering = []
        taking = []
        refusedAt = [:]
    }

    /// Whether that has come there.
    func hasCome(_ wire: [UInt8], at address: Address) -> Bool { came[address]?.contains(wire) ?? false }

    mutating func received(_ address: Address?, _ payload: [UInt8]) {
        if case .desired? = address, let address { came[address, default: []].insert(payload) }
        if !forged.contains(payload) { bus.received(address, payload) }
    }

    mutating func noteRefusal(_ entry: DeviceEffect.LogEntry) {
        guard entry.message == "refused a document", let detail = entry.detail else { return }
        refusals = (refusals.filter { $0 != detail } + [detail]).suffix(Status.maximumRefusals)
    }

    /// The core has looked at all that came.
    mutating func looked(_ core: DeviceCore, at running: Int64) {
        let contacts = bus.looked(core, at: running)
        words = contacts.map(\.clock)
        for contact in contacts {
            lag = min(lag ?? .max, running - contact.counts)
            named = max(named, Revision(epoch: contact.clock.epoch, number: contact.clock.revision))
        }
    }
}
