import DeviceAgent
import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("Whatever happens in whatever order")
struct RandomSequenceTests {
    /// `FLEETBUS_SEED` and `FLEETBUS_SEQUENCES` choose others, and more.
    @Test("once everything is connected and answered, every status says what the layers say")
    func convergence() throws {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["FLEETBUS_SEED"].flatMap { UInt64($0) } ?? 1
        let count = environment["FLEETBUS_SEQUENCES"].flatMap { UInt64($0) } ?? 60
        for seed in first..<first + count {
            var world = try World(seed: seed)
            do {
                try world.run(steps: 40)
                try world.converge()
                try world.check()
            } catch {
                Issue.record("seed \(seed): \(error)\n\(world.history.joined(separator: "\n"))")
                return
            }
        }
    }
}

/// One device, a broker that is slow, two apps that come and go, and an operator without a plan.
private struct World {
    var generator: SeededGenerator
    var device: TestDevice
    var apps: [AppID: ScriptedApp] = [:]
    var installs: [AppID: RandomID] = [:]
    /// What the newest document of each address says.
    var wish: [Address: (content: DesiredDocument.Content, revision: Int64)] = [:]
    var wasRetired: Set<AppID> = []
    var history: [String] = []

    static let appIDs = [mail, notes]
    static let groups = ["kiosk", "lobby"].map { GroupID(unchecked: $0) }

    init(seed: UInt64) throws {
        generator = SeededGenerator(seed: seed)
        device = try TestDevice()
        device.underWay = []
        device.comparesStore = seed % 10 == 0
        for app in Self.appIDs { installs[app] = .random() }
    }

    func isRunning(_ app: AppID) -> Bool { apps[app] != nil }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    mutating func run(steps: Int) throws {
        for _ in 0..<steps { try step() }
    }

    private mutating func step() throws {
        let app = Self.appIDs.randomElement(using: &generator) ?? mail
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<8: try connectOrNot()
        case 8..<12:
            history.append("agent restarts")
            try device.restart()
            for id in apps.keys { apps[id]?.lostConnection() }
            for id in apps.keys.sorted() { try comeBack(id) }
        case 12..<24: try startOrEnd(app)
        case 24..<54: try change(app)
        case 54..<58: try changeMembership()
        case 58..<61: try changePriority()
        case 61..<76:
            for _ in 0..<Int.random(in: 1...6, using: &generator) { try device.receiveNext() }
            try collect()
        case 76..<90: for _ in 0..<Int.random(in: 1...8, using: &generator) { try stepApp(app) }
        case 90..<96:
            let policy = Policy.allCases.randomElement(using: &generator) ?? .auth
            try acknowledge(app, policy, [.applied, .error, .unsupported].randomElement(using: &generator) ?? .applied)
        case 96..<97:
            guard let process = apps[app], process.isReady else { return }
            history.append("\(app) retires itself")
            wasRetired.insert(app)
            try say(.retire(), from: process)
        default:
            let seconds = Int64.random(in: 1...400, using: &generator)
            history.append("\(seconds) s pass")
            try device.wait(seconds)
            try collect()
        }
    }

    private mutating func connectOrNot() throws {
        if device.connection == nil {
            history.append("broker connects")
            device.isControllerThere = chance(80)
            try device.connect()
        } else {
            history.append("broker disconnects")
            try device.disconnect()
        }
    }

    private mutating func startOrEnd(_ app: AppID) throws {
        if let process = apps[app] {
            history.append("\(app) ends")
            apps[app] = nil
            device.sent[process.link] = nil
            try device.handle(.linkClosed(process.link))
        } else {
            if chance(10) { installs[app] = .random() }
            guard let install = installs[app] else { return }
            history.append("\(app) starts")
            var process = ScriptedApp(app, install: install, link: LinkID(0))
            process.link = try device.launch(app, install: install, launch: process.launch)
            apps[app] = process
        }
        try collect()
    }

    private mutating func comeBack(_ app: AppID) throws {
        guard let process = apps[app] else { return }
        history.append("\(app) comes back")
        apps[app]?.link = try device.launch(
            app, install: process.install, launch: process.launch, resume: process.resume)
        try collect()
    }

    private mutating func collect() throws {
        for (id, process) in apps {
            apps[id]?.waiting += device.sent.removeValue(forKey: process.link) ?? []
        }
    }

    private mutating func say(_ frame: AppFrame, from process: ScriptedApp) throws {
        try device.handle(.frame(process.link, frame))
        try collect()
    }

    private mutating func stepApp(_ app: AppID) throws {
        guard var process = apps[app] else { return }
        let (_, frame) = process.step()
        apps[app] = process
        if let frame { try say(frame, from: process) }
    }

    private mutating func acknowledge(_ app: AppID, _ policy: Policy, _ state: PolicyState) throws {
        guard var process = apps[app], let frame = process.acknowledge(policy, state) else { return }
        history.append("\(app) answers \(policy) with \(state)")
        apps[app] = process
        try say(frame, from: process)
    }

    // MARK: The operator

    private mutating func publish(_ address: Address, _ content: DesiredDocument.Content) throws {
        let wire = try device.fleet.document(address, content)
        history.append("\(device.fleet.revision) \(address.path): \(content)")
        wish[address] = (content, device.fleet.revision)
        try device.publish(address, wire)
    }

    private mutating func change(_ app: AppID) throws {
        let layers: [Layer] =
            [.all, .device(device.device), .device(DeviceID(unchecked: "till-2"))] + Self.groups.map { .group($0) }
        let layer = layers.randomElement(using: &generator) ?? .all
        let aspect = Aspect.allCases.randomElement(using: &generator) ?? .auth
        let address = Address.desired(layer, app, aspect)
        let isGone = chance(25)
        let content = isGone ? DesiredDocument.Content.tombstone : content(of: aspect)
        if case .aspect(let value) = content, case .auth(.retired, _) = value.content { wasRetired.insert(app) }
        try publish(address, content)
    }

    private mutating func content(of aspect: Aspect) -> DesiredDocument.Content {
        switch aspect {
        case .auth:
            return .auth(
                chance(5) ? .retired : chance(60) ? .authorized : .unauthorized, chance(70) ? "m" : "other")
        case .config: return .config(["k": chance(50) ? "a" : "b"])
        case .dlp:
            var dlp = DLP()
            dlp.openIn =
                [.unauthorized, .authorized, .appConnectApps, .whitelist([mail])].randomElement(
                    using: &generator) ?? .authorized
            dlp.print = chance(50) ? .authorized : .unauthorized
            dlp.pasteboard = chance(50) ? .secureCopy : .authorized
            dlp.dragAndDrop = chance(50) ? .allApps : chance(50) ? .appConnectApps : .notAllowed
            return .aspect(DesiredValue(.dlp(dlp)))
        case .secureServices:
            var value = SecureServicesValue()
            value.isLocked = chance(50)
            return .aspect(DesiredValue(.secureServices(value)))
        case .logLevel:
            return .level(
                LogLevelWish(
                    level: LogLevel.allCases.randomElement(using: &generator) ?? .info,
                    duration: chance(50) ? 300 : nil))
        }
    }

    private mutating func changeMembership() throws {
        let groups = Self.groups.filter { _ in chance(50) }
        try publish(.membership(device.device), groups.isEmpty && chance(50) ? .tombstone : .membership(groups))
    }

    private mutating func changePriority() throws {
        let group = Self.groups.randomElement(using: &generator) ?? Self.groups[0]
        try publish(.groupMeta(group), chance(30) ? .tombstone : .groupMeta(GroupMeta(priority: chance(50) ? 1 : 2)))
    }

    // MARK: The end

    mutating func converge() throws {
        history.append("— all is connected and answered")
        if device.connection != nil { try device.disconnect() }
        device.isControllerThere = true
        // Whatever was latched ends by an auth document that is newer, unless a layer still says retired.
        for app in Self.appIDs { try publish(.desired(.device(device.device), app, .auth), .auth(.authorized)) }
        for app in Self.appIDs where apps[app] == nil { try startOrEnd(app) }
        try device.connect()
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        try device.wait(1_000)
        while device.underWay?.isEmpty == false { try device.receiveNext() }
        try collect()
        var isBusy = true
        while isBusy {
            isBusy = false
            for app in Self.appIDs {
                while apps[app]?.running != nil || apps[app]?.waiting.isEmpty == false {
                    isBusy = true
                    try stepApp(app)
                }
                for policy in Policy.allCases where policy.isAcknowledgedByApp {
                    let before = try device.status(app)[policy].attempt.outcome
                    if before == .delivered { try acknowledge(app, policy, .applied) }
                }
            }
        }
        try device.compareStore()
    }

    func check() throws {
        let groups = layers()
        for app in Self.appIDs {
            let resolver = Resolver(wish: wish, order: groups)
            let status = try device.status(app)
            guard let process = apps[app], process.isReady else { throw TestFailure("\(app) has had no ready") }
            try expect(device.underWay?.isEmpty == true, "all has arrived")
            let isRetired = resolver.auth(app).state == .retired
            try expect((status.authState == .retired) == isRetired, "\(app) is \(status.authState)")
            try expect(device.keys.contains(app) == !isRetired, "\(app)'s keys: \(device.keys)")
            try expect(status.keys == (isRetired ? .destroyed : .present), "\(app)'s keys in its status")
            let managed = status.authReason == .selfRetired ? ManagedPolicy.unknown : .managed
            try expect(process.managed == managed && status.managed == managed, "\(app) is \(process.managed)")
            try expect(process.availability == status.secureServices, "\(app)'s availability: \(process.availability)")
            // Nothing else is in force in an app that has retired itself, until a later auth document lets it live.
            if status.authReason == .selfRetired {
                try expect(isRetired, "\(app) has retired itself, and a later document authorizes it")
                continue
            }
            for policy in Policy.allCases {
                let expected = resolver.value(of: policy, app, among: Self.appIDs)
                let report = status[policy]
                let what = "\(app)'s \(policy): \(report)"
                try expect(report.source == expected.source, "\(what), source \(expected)")
                try expect(report.received == expected.revision, "\(what), revision \(expected)")
                try expect(report.attempt.revision == expected.revision, "\(what), attempt \(expected)")
                try expect(device.core.state.apps[app]?[policy].value == expected.value, "\(what), value \(expected)")
                if policy != .secureServices {
                    try expect(process.values[policy.index] == expected.value, "\(what) in hand \(expected)")
                }
                switch report.attempt.outcome {
                case .applied: try expect(report.applied == report.received, "\(what) applied")
                case .error, .unsupported: try expect(policy.isAcknowledgedByApp, what)
                case .expired: try expect(policy == .logLevel, what)
                case .pending, .delivered, .rejected, .awaitingCode: throw TestFailure("not final: \(what)")
                }
            }
        }
    }

    private func expect(_ condition: Bool, _ what: String) throws {
        if !condition { throw TestFailure(what) }
    }

    /// The layers of this device, the deciding one first.
    private func layers() -> [Layer] {
        var groups: [GroupID] = []
        if case .membership(let named)? = wish[.membership(device.device)]?.content { groups = named }
        func priority(_ group: GroupID) -> Int64 {
            if case .groupMeta(let meta)? = wish[.groupMeta(group)]?.content { meta.priority } else { 0 }
        }
        groups.sort { (-priority($0), $0.text) < (-priority($1), $1.text) }
        return [.device(device.device)] + groups.map { .group($0) } + [.all]
    }
}

/// What the documents say, read off as the design words it.
private struct Resolver {
    typealias Said = (content: DesiredDocument.Content, revision: Int64)
    typealias Expected = (value: PolicyValue, source: Address?, revision: Int64)

    let wish: [Address: Said]
    let order: [Layer]

    private func said(_ app: AppID, _ aspect: Aspect) -> [(address: Address, value: DesiredValue, revision: Int64)] {
        order.compactMap { layer in
            let address = Address.desired(layer, app, aspect)
            guard let said = wish[address], case .aspect(let value) = said.content else { return nil }
            return (address, value, said.revision)
        }
    }

    func auth(_ app: AppID) -> (state: AuthState, message: String, source: Address?, revision: Int64) {
        let all = said(app, .auth).compactMap { said -> (AuthState, String, Address?, Int64)? in
            guard case .auth(let state, let message) = said.value.content else { return nil }
            return (state, message, said.address, said.revision)
        }
        return all.first { $0.0 == .retired } ?? all.first ?? (.unauthorized, PolicyValue.defaultMessage, nil, 0)
    }

    func value(of policy: Policy, _ app: AppID, among apps: [AppID]) -> Expected {
        if policy == .auth {
            let auth = auth(app)
            return (.auth(auth.state, message: auth.message), auth.source, auth.revision)
        }
        guard let aspect = policy.aspect else { return (.default(of: policy), nil, 0) }
        let documents = said(app, aspect)
        guard let first = documents.first else { return (.default(of: policy), nil, 0) }
        func found(_ value: PolicyValue) -> Expected { (value, first.address, first.revision) }
        let authorized = apps.filter { auth($0).state == .authorized }.sorted()
        switch (policy, first.value.content) {
        case (.config, .config(let values)): return found(.config(values))
        case (.secureServices, .secureServices(let value)): return found(.secureServices(value))
        case (.openIn, .dlp(let dlp)):
            switch dlp.openIn {
            case .unauthorized: return found(.openIn(.unauthorized, whitelist: []))
            case .authorized: return found(.openIn(.authorized, whitelist: []))
            case .whitelist(let apps): return found(.openIn(.whitelist, whitelist: apps))
            case .appConnectApps: return found(.openIn(.whitelist, whitelist: authorized))
            }
        case (.openFrom, .dlp): return found(.openFrom(.unauthorized, whitelist: []))
        case (.pasteboard, .dlp(let dlp)): return found(.pasteboard(dlp.pasteboard))
        case (.print, .dlp(let dlp)): return found(.print(dlp.print))
        case (.dragAndDrop, .dlp(let dlp)):
            return found(.dragAndDrop(dlp.dragAndDrop, apps: dlp.dragAndDrop == .appConnectApps ? authorized : []))
        default:
            // Whatever had a time to live is over by now.
            let lasting = documents.lazy.compactMap { document -> LogLevel? in
                guard case .logLevel(let wish) = document.value.content, wish.duration == nil else { return nil }
                return wish.level
            }
            return found(.logLevel(lasting.first ?? .status))
        }
    }
}
