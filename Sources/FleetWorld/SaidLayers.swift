import DeviceAgent
import FleetController
import FleetProtocol

/// What the layers say to one device, worked out from the controller's documents, or those that it holds itself, alone.
struct SaidLayers {
    private typealias Document = (
        value: DesiredDocument.Content, revision: Revision, change: Revision, issuedAt: Timestamp
    )

    private let device: DeviceID
    private var documents: [Address: Document] = [:]
    private(set) var groups: [GroupID] = []
    /// Those that an older agent cannot read.
    private var unknown: Set<Address> = []
    /// The world has rested for longer than a level lasts that is for a time.
    var hasRested = true

    init(_ wishes: [FleetStore.Wish], of device: DeviceID, readBy older: OlderReader? = nil) {
        self.device = device
        for wish in wishes {
            let wire = older?.read(wish.wire, at: wish.address) ?? wish.wire
            if wire != wish.wire { unknown.insert(wish.address) }
            note(wire, at: wish.address)
        }
        sortGroups()
    }

    /// - Parameter groups: Those whose documents count.
    init(held: [Address: [UInt8]], by device: DeviceID, in groups: [GroupID]) {
        self.device = device
        for (address, wire) in held { note(wire, at: address) }
        self.groups = groups
        sortGroups()
    }

    private mutating func note(_ wire: [UInt8], at address: Address) {
        guard let document = try? DesiredDocument(wire: wire), !document.isTombstone
        else { return }
        documents[address] = (document.content, document.revision, document.change, document.issuedAt)
        if case (.membership(device), .membership(let groups)) = (address, document.content) { self.groups = groups }
    }

    private mutating func sortGroups() {
        func priority(_ group: GroupID) -> Int64 {
            if case .groupMeta(let meta)? = documents[.groupMeta(group)]?.value { meta.priority } else { 0 }
        }
        groups.sort { left, right in
            let (first, second) = (priority(left), priority(right))
            return first != second ? first > second : left < right
        }
    }

    func haveDocuments(before epoch: Int64) -> Bool { documents.values.contains { $0.revision.epoch < epoch } }

    func haveDocument(of app: AppID, before epoch: Int64) -> Bool {
        Aspect.allCases.contains { chain(of: app, $0).contains { $0.1.revision.epoch < epoch } }
    }

    /// Whether any layer says anything about an app.
    func speak(of app: AppID) -> Bool {
        Aspect.allCases.contains { !chain(of: app, $0).isEmpty }
    }

    /// The document that decides a policy, its revision and its time; nil when none does.
    func deciding(
        _ policy: Policy, of app: AppID
    ) -> (source: Address, revision: Int64, same: ClosedRange<Int64>, issuedAt: Timestamp)? {
        guard let aspect = policy.aspect, let (address, document) = deciding(chain(of: app, aspect)) else { return nil }
        let (revision, change) = (document.revision, document.change)
        // Signed again within its epoch, it is what it was.
        let first = change.epoch == revision.epoch ? change.number : revision.number
        return (address, revision.number, first...revision.number, document.issuedAt)
    }

    /// Whether an older agent cannot read what the deciding document says about a policy; of data that leaves an app, that
    /// is its pasteboard alone.
    func isUnknown(_ policy: Policy, of app: AppID) -> Bool {
        guard let aspect = policy.aspect, let (address, _) = deciding(chain(of: app, aspect)) else { return false }
        return unknown.contains(address) && (aspect != .dlp || policy == .pasteboard)
    }

    /// Whether any layer says that an app is retired.
    func retire(_ app: AppID) -> Bool { chain(of: app, .auth).contains { isRetired($0.1.value) } }

    /// Whether one of these does.
    func retire(_ app: AppID, by layers: Set<Layer>) -> Bool {
        chain(of: app, .auth).contains { address, document in
            guard case .desired(let layer, _, _) = address else { return false }
            return layers.contains(layer) && isRetired(document.value)
        }
    }

    /// Whether the first layer that speaks of a passcode requires one.
    func requirePasscode(for app: AppID) -> Bool {
        for (address, document) in chain(of: app, .secureServices) {
            guard !unknown.contains(address), case .aspect(let value) = document.value,
                case .secureServices(let services) = value.content
            else { return true }
            if let passcode = services.passcode { return passcode.isRequired }
        }
        return false
    }

    private func chain(of app: AppID, _ aspect: Aspect) -> [(Address, Document)] {
        let layers: [Layer] = [.device(device)] + groups.map { .group($0) } + [.all]
        return layers.compactMap { layer in
            let address = Address.desired(layer, app, aspect)
            return documents[address].map { (address, $0) }
        }
    }

    private func deciding(_ chain: [(Address, Document)]) -> (Address, Document)? {
        chain.first { isRetired($0.1.value) } ?? chain.first
    }

    /// The value that a policy must have (nil where time decides it, or what was there before), the deciding document and its
    /// revision. What a latched app had goes with its documents, and with its own retirement.
    func wish(
        _ policy: Policy, of record: AppRecord, _ authorized: [AppID], at wall: Timestamp
    ) -> (PolicyValue?, Address?, Int64) {
        guard let aspect = policy.aspect else { return (.expectedDefault(of: policy), nil, 0) }
        let found = chain(of: record.id, aspect)
        guard let (address, document) = deciding(found) else {
            if policy == .auth, let latch = record.latch { return (.auth(.retired, message: latch.message), nil, 0) }
            return (.expectedDefault(of: policy), nil, 0)
        }
        let source: (Address?, Int64) = (address, document.revision.number)
        if policy == .logLevel { return (level(found.map(\.1.value), of: record, at: wall), source.0, source.1) }
        guard case .aspect(let desired) = document.value else { return (nil, source.0, source.1) }
        if let latch = record.latch, policy == .auth {
            // A layer that says retired gives the message, also when another cause came first; but not the app's own.
            // What nobody understands ends no retirement.
            let isLater = document.change > latch.change && !unknown.contains(address)
            let isToldByLayers = isLater || isRetired(document.value) && latch.reason != .selfRetired
            return (
                isToldByLayers ? value(policy, desired, authorized) : .auth(.retired, message: latch.message),
                source.0, source.1
            )
        }
        if record.latch?.reason == .selfRetired { return (.expectedDefault(of: policy), source.0, source.1) }
        if isUnknown(policy, of: record.id) { return (unknownValue(of: policy, in: record), source.0, source.1) }
        return (value(policy, desired, authorized), source.0, source.1)
    }

    /// What is in force where nobody understands what is said. That is written again, beside the decoder, since nothing that is
    /// not understood opens anything; nil where it is what was there before.
    private func unknownValue(of policy: Policy, in record: AppRecord) -> PolicyValue? {
        switch policy {
        case .auth, .pasteboard: return .expectedDefault(of: policy)
        case .secureServices:
            var services = record.secureServices
            services.isLocked = true
            return .secureServices(services)
        default: return nil
        }
    }

    /// Why an app's authorization must be what it is. Other laws say when an app is out of contact.
    func reason(of record: AppRecord) -> AuthReason {
        if let latch = record.latch {
            return retire(record.id) && latch.reason != .selfRetired ? .policy : latch.reason
        }
        if record.authReason == .outOfContact { return .outOfContact }
        if isUnknown(.auth, of: record.id) { return .unknownValue }
        return deciding(.auth, of: record.id) == nil ? .none : .policy
    }

    /// How what the agent applies itself must have ended; nil where a person or a clock decides, or the app.
    func outcome(_ policy: Policy, of record: AppRecord, at wall: Timestamp) -> Outcome? {
        guard !policy.isAcknowledgedByApp, record.latch?.reason != .selfRetired else { return nil }
        guard let aspect = policy.aspect, case .aspect(let value) = chain(of: record.id, aspect).first?.1.value else {
            return .applied
        }
        switch value.content {
        case .secureServices: return .applied
        case .logLevel(let wish):
            if isPassed(wish, at: wall) { return .expired }
            return isOpen(wish) ? nil : .applied
        case .dlp: return .applied
        case .auth, .config, .unreadable: return nil
        }
    }

    private func isPassed(_ wish: LogLevelWish, at wall: Timestamp) -> Bool {
        wish.duration != nil && hasRested || wish.notAfter.map { $0.advanced(bySeconds: 2) < wall } ?? false
    }

    /// Whether a person's code or a clock decides.
    private func isOpen(_ wish: LogLevelWish) -> Bool {
        wish.code != nil && wish.level.isExpectedToAsk || wish.notAfter != nil || wish.duration != nil
    }

    /// Those that last only for a time have passed. nil where a person's code decides, or a clock that was set back.
    private func level(
        _ documents: [DesiredDocument.Content], of record: AppRecord, at wall: Timestamp
    ) -> PolicyValue? {
        if record.latch?.reason == .selfRetired { return .expectedDefault(of: .logLevel) }
        for case .aspect(let value) in documents {
            guard case .logLevel(let wish) = value.content else { return nil }
            if isPassed(wish, at: wall) { continue }
            return isOpen(wish) ? nil : .logLevel(wish.level)
        }
        return .expectedDefault(of: .logLevel)
    }

    private func isRetired(_ content: DesiredDocument.Content) -> Bool {
        guard case .aspect(let value) = content, case .auth(.retired, _) = value.content else { return false }
        return true
    }

    private func value(_ policy: Policy, _ desired: DesiredValue, _ authorized: [AppID]) -> PolicyValue? {
        switch desired.content {
        case .auth(let state, let message): return .auth(state, message: message)
        case .config(let values): return .config(values)
        case .secureServices(let value): return .secureServices(value)
        case .logLevel, .unreadable: return nil
        case .dlp(let dlp):
            switch policy {
            case .pasteboard: return .pasteboard(dlp.pasteboard)
            case .print: return .print(dlp.print)
            case .dragAndDrop:
                return .dragAndDrop(dlp.dragAndDrop, apps: dlp.dragAndDrop == .appConnectApps ? authorized : [])
            case .openIn:
                switch dlp.openIn {
                case .unauthorized: return .openIn(.unauthorized, whitelist: [])
                case .authorized: return .openIn(.authorized, whitelist: [])
                case .whitelist(let apps): return .openIn(.whitelist, whitelist: apps)
                case .appConnectApps: return .openIn(.whitelist, whitelist: authorized)
                }
            case .openFrom:
                switch dlp.openFrom {
                case .unauthorized: return .openFrom(.unauthorized, whitelist: [])
                case .authorized: return .openFrom(.authorized, whitelist: [])
                case .whitelist(let apps): return .openFrom(.whitelist, whitelist: apps)
                case .appConnectApps: return .openFrom(.whitelist, whitelist: authorized)
                }
            case .auth, .config, .secureFileIO, .secureServices, .logLevel: return nil
            }
        }
    }
}
