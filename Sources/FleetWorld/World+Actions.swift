import DeviceAgent
import FleetController
import FleetProtocol

extension World {
    func perform(_ action: Action) {
        switch action {
        case .request(let person, let change): ask(operators[person], change)
        case .crashAgent(let device, let effects):
            if effects == 0 { machines[device].kill() } else { machines[device].effectsLeft = effects - 1 }
        case .reboot(let device): machines[device].reboot()
        case .fillDisk(let device, let time): machines[device].fillDisk(for: time)
        case .setClock(let device, let seconds): machines[device].setClock(by: seconds)
        case .stopClock(let device, let time): machines[device].stopClock(for: time)
        case .stall(let device, let time, let isAsleep): machines[device].stall(for: time, isAsleep: isAsleep)
        case .stallController(let time): controller.stall(for: time)
        case .image(let device): machines[device].takeImage()
        case .putBack(let device): machines[device].putBack()
        case .crashApp(let device, let app): machines[device].apps[app].crash()
        case .reinstallApp(let device, let app): machines[device].apps[app].reinstall()
        case .closeApp(let device, let app, let time): machines[device].apps[app].close(for: time)
        case .answer(let device, let app): machines[device].apps[app].answerAgain()
        case .attempt(let device, let app):
            // Where few are kept, more than these.
            let attempts = requestLimit < 10 ? 1 + noise.below(2 * requestLimit + 2) : 1
            for _ in 0..<attempts { machines[device].apps[app].attempt() }
        case .retire(let device, let app): machines[device].apps[app].retire()
        case .cutDevice(let device, let delay): machines[device].cut(noticedAfter: delay)
        case .cutController(let delay): controller.cut(noticedAfter: delay)
        case .cutOperator(let person): operators[person].cut()
        case .crashBroker(let time): broker.stop(isCrash: true, downFor: time)
        case .stopBroker(let time): broker.stop(isCrash: false, downFor: time)
        case .ageBroker(let savings, let time): broker.stop(isCrash: true, downFor: time, age: savings)
        case .saveBroker: broker.save()
        case .stallBroker(let time): broker.stall(for: time)
        case .refuseSaid(let device, let time):
            broker.refuse(device.map { machines[$0].user } ?? controller.user, for: time)
            for person in operators where noise.chance(20) { broker.refuse(person.user, for: time) }
        case .hide(let device, let time, let isAll):
            broker.hide(from: device.map { machines[$0].user } ?? controller.user, for: time, isAll: isAll)
        case .lockOut(let time): broker.lockOut(for: time)
        case .crashController(let effects, let time):
            controller.downFor = time
            if effects == 0 { controller.kill() } else { controller.effectsLeft = effects - 1 }
        case .fillControllerDisk(let transactions): controller.fillDisk(after: transactions)
        case .backUpController: controller.takeBackUp()
        case .putBackController(let withFolder): controller.putBack(withFolder: withFolder)
        case .setControllerClock(let seconds): controller.setClock(by: seconds)
        case .hideHome(let time): controller.hideHome(for: time)
        case .putBackHome: putBackHome()
        case .copyHome(let pause): rival.start(comingEvery: pause)
        case .forge(let device, let forgery): forge(forgery, for: machines[device])
        case .stopAgent(let device): machines[device].stop()
        case .unplug(let device, let time):
            machines[device].unplug(for: time)
            // Now and then somebody sets its clock meanwhile.
            var any = SplitMix64(seed: schedule.seed ^ UInt64(bitPattern: now))
            guard any.chance(10) else { return }
            let seconds: Int64 = [-60, 60, 120, 3_600][any.below(4)]
            after(Int64(any.below(Int(time)))) { [unowned self] in
                if !isCalm { machines[device].setClock(by: seconds) }
            }
        case .freeze(let device, let time, let isDead): machines[device].freeze(for: time, isDead: isDead)
        case .freezeController(let time, let isDead): controller.freeze(for: time, isDead: isDead)
        case .refuse(let device, let app):
            machines[device].refuse(machines[device].apps[app].id, again: now.isMultiple(of: 2) ? 4 : 0)
        case .intrude(let device, let app): machines[device].intrude(as: machines[device].apps[app])
        case .copy(let device, let time): machines[device].beginCopying(for: time)
        case .display(let device, let app): machines[device].apps[app].display()
        case .enterCode(let device, let app, let isRight):
            machines[device].enterCode(for: machines[device].apps[app].id, isRight: isRight)
        case .guess(let device, let time): machines[device].person.guessesUntil = now + time
        case .question(let person, let verb):
            checkCounts()
            let verb = Self.questions[verb]
            var any = SplitMix64(seed: schedule.seed ^ UInt64(bitPattern: now))
            operators[person].ask(verb, verb == .progress ? json(SelectionRequest(documents: [])) : json(list(&any)))
        case .renewTrust: controller.renewTrust()
        case .remove(let device): remove(machines[device])
        case .enroll(let device, let isNew): enroll(machines[device], isNew: isNew)
        case .clone(let device): clone(machines[device])
        case .pause: checkCounts()
        }
    }

    // MARK: Operators

    private static let questions: [Verb] = [.groups, .devices, .apps, .policies, .status, .progress, .history]

    private func ask(_ person: Operator, _ change: Change) {
        // How exactly it is asked for.
        var manner = SplitMix64(seed: schedule.seed ^ UInt64(bitPattern: now))
        // Now and then by somebody who may only look.
        let person = manner.chance(4) ? viewer : person
        let why = now % 3 == 0 ? nil : "at \(now)"
        switch change {
        case .apply(let app, let place, let aspect, let variant, let isBased):
            let aspect = Aspect.allCases[aspect]
            let layer = layer(place)
            let address = Address.desired(layer, appID(app), aspect)
            let wishes = isBased ? (try? controller.store.wishes()) ?? [] : []
            var basedOn = wishes.first { $0.address == address }?.revision.number
            // Made from nothing, or from what was there before.
            let isStale = isBased && manner.chance(30)
            if isStale { basedOn = manner.chance(50) ? 0 : basedOn.map { $0 - 1 } }
            var changes = [
                ApplyRequest.Change(
                    app: appID(app), layer: layer, aspect: aspect, value: value(of: aspect, variant, for: appID(app)),
                    basedOn: basedOn)
            ]
            if manner.chance(10) {
                // Now and then the same again, which is refused with all the rest.
                let other = Aspect.allCases[manner.below(Aspect.allCases.count)]
                let value = value(of: other, (variant + 1) % 6, for: appID(app))
                changes.append(
                    .init(
                        app: appID(app), layer: layer, aspect: other, value: value,
                        basedOn: manner.chance(20) ? Int64(manner.below(8)) : nil))
            }
            let request = ApplyRequest(changes: changes, why: why, isAgain: manner.chance(10))
            let read = ApplyRequest(changes: changes.map(\.asRead), why: why, isAgain: request.isAgain)
            person.ask(.apply, json(request, readAs: read), basedOn: isStale ? nil : basedOn.map { (address, $0) })
        case .delete(let app, let place):
            let aspect = manner.chance(30) ? Aspect.allCases[manner.below(Aspect.allCases.count)] : nil
            let selector = DocumentSelector(app: appID(app), layer: layer(place), aspect: aspect)
            person.ask(.delete, json(SelectionRequest(documents: [selector], why: why)))
        case .layers(let app, let aspect, let isDeleted):
            askLayers(person, appID(app), Aspect.allCases[aspect], isDeleted: isDeleted, why, &manner)
        case .group(let group, let priority, let members):
            let devices = machines.filter { members >> $0.number & 1 == 1 }.map(\.id)
            var request = GroupRequest(group: groupID(group), priority: priority, devices: devices, why: why)
            if manner.chance(30) {
                let others = machines.filter { members >> $0.number & 1 == 0 && manner.chance(50) }.map(\.id)
                let all = manner.chance(30) ? machines.filter { _ in manner.chance(50) }.map(\.id) : nil
                request = GroupRequest(
                    group: groupID(group), priority: manner.chance(50) ? priority : nil, devices: all, add: devices,
                    remove: others, why: why)
            }
            person.ask(.groupSet, json(request))
        case .deleteGroup(let group): person.ask(.groupDelete, json(GroupRequest(group: groupID(group), why: why)))
        }
    }

    /// What is asked for on several layers at once, in any order.
    private func askLayers(
        _ person: Operator, _ app: AppID, _ aspect: Aspect, isDeleted: Bool, _ why: String?, _ manner: inout SplitMix64
    ) {
        let device = Place.device(manner.below(schedule.devices))
        let places = ([.all, device] + (0..<Schedule.groups).map { .group($0) }).filter { _ in manner.chance(65) }
        let layers = places.map(layer).shuffled(using: &manner)
        if isDeleted {
            let live = layers.filter { controller.desired.values[.desired($0, app, aspect)] != nil }
            let selectors = live.map { DocumentSelector(app: app, layer: $0, aspect: manner.chance(70) ? aspect : nil) }
            return person.ask(.delete, json(SelectionRequest(documents: selectors, why: why)))
        }
        let changes = layers.map { layer in
            ApplyRequest.Change(
                app: app, layer: layer, aspect: aspect, value: value(of: aspect, manner.below(6), for: app))
        }
        let request = ApplyRequest(changes: changes, why: why)
        person.ask(.apply, json(request, readAs: ApplyRequest(changes: changes.map(\.asRead), why: why)))
    }

    /// Some documents that somebody could ask about.
    func selector(_ any: inout SplitMix64) -> DocumentSelector {
        let place: Place =
            switch any.below(4) {
            case 0: .group(any.below(Schedule.groups))
            case 1: .device(any.below(schedule.devices))
            default: .all
            }
        let aspect = any.chance(50) ? Aspect.allCases[any.below(Aspect.allCases.count)] : nil
        return DocumentSelector(app: appID(any.below(schedule.apps)), layer: layer(place), aspect: aspect)
    }

    /// A part of a list, or all of it.
    func list(_ any: inout SplitMix64) -> ListRequest {
        let selector = selector(&any)
        let device = DeviceID(unchecked: "d\(any.below(schedule.devices))")
        return ListRequest(
            app: any.chance(50) ? selector.app : nil, device: any.chance(30) ? device : nil,
            layer: any.chance(30) ? selector.layer : nil)
    }

    /// - Parameter expected: What a reader makes of it, where that is not the same.
    func json<Value: JSONCodable & Equatable>(_ value: Value, readAs expected: Value? = nil) -> JSONValue {
        do {
            let read = try Value(json: value.json, limit: Request.maximumSize)
            if read != expected ?? value { fail(.total, "\(value.jsonText) is read as \(read)") }
            return try JSONValue(json: value.json, limit: Request.maximumSize)
        } catch {
            fail(.total, "\(value.jsonText) cannot be read: \(error)")
            return .null
        }
    }

    func appID(_ number: Int) -> AppID { AppID(unchecked: "a\(number)") }

    /// In some worlds one comes first by its bytes alone.
    func groupID(_ number: Int) -> GroupID {
        GroupID(unchecked: number == 1 && schedule.seed % 4 == 3 ? "G1" : "g\(number)")
    }

    private func layer(_ place: Place) -> Layer {
        switch place {
        case .all: .all
        case .group(let group): .group(groupID(group))
        case .device(let device): .device(DeviceID(unchecked: "d\(device)"))
        }
    }

    /// Seconds, less than the world has to come to rest.
    private static let levelDurations: [Int64?] = [nil, 5, nil, 25, nil, 25]
    /// In the middle of most schedules.
    private static let levelEnd = SimulatedFleet.begin.advanced(bySeconds: 15)
    private static let code = CodeHash(
        salt: [UInt8](repeating: 1, count: 8), hash: [UInt8](repeating: 2, count: 32), n: 2, r: 1, p: 1)

    /// Whether every level of this app has a code, for which the sensitive ones ask.
    static func needsCode(_ app: AppID) -> Bool { app.text.utf8.last.map { $0 % 2 == 1 } ?? false }

    private func value(of aspect: Aspect, _ variant: Int, for app: AppID) -> DesiredValue {
        switch aspect {
        case .auth:
            switch variant {
            case 0...2: return DesiredValue(.auth(.authorized, message: variant == 0 ? "" : "Welcome \(variant)."))
            case 3...4:
                return DesiredValue(.auth(.unauthorized, message: variant == 3 ? "" : "Ask \(variant)."))
            default: return DesiredValue(.auth(.retired, message: Self.needsCode(app) ? "" : "Gone."))
            }
        case .dlp:
            var dlp = DLP()
            let lists: [DLP.Opening] = [[0], [0, 1], [2]].map { .whitelist($0.map(appID)) }
            dlp.openIn = [.unauthorized, .authorized, lists[0], .appConnectApps, lists[1], lists[2]][variant]
            dlp.openFrom = [.appConnectApps, .unauthorized, .authorized, .whitelist([appID(1)])][variant % 4]
            dlp.pasteboard = [.unauthorized, .authorized, .secureCopy][variant % 3]
            dlp.print = [.unauthorized, .authorized][variant % 2]
            dlp.dragAndDrop = [.notAllowed, .appConnectApps, .allApps][variant % 3]
            return DesiredValue(.dlp(dlp))
        case .config:
            // Two of them are other texts, and look the same.
            let server = [1: "caf\u{E9}", 4: "cafe\u{301}"][variant] ?? "\(variant)"
            return DesiredValue(.config(["server": server, "key \(variant % 3)": "here"]))
        case .secureServices:
            var value = SecureServicesValue()
            switch variant {
            case 0:
                var passcode = SecureServicesValue.Passcode(isRequired: true)
                passcode.minLength = Self.needsCode(app) ? Person.longPasscode : Person.shortPasscode
                passcode.classes = Self.needsCode(app) ? ["digit", "letter"] : nil
                (passcode.maxAttempts, passcode.then) = Self.needsCode(app) ? (3, .wipe) : (4, .lock)
                value.passcode = passcode
                if !Self.needsCode(app) { value.autoLock = 40 }
            case 1: value.isLocked = true
            // Longer than most worlds last, and less than somebody may set a clock ahead.
            case 2: value.offline = .init(blockAfter: 3_000)
            case 3:
                value.offline = .init(blockAfter: 90)
                value.passcode = .init(isRequired: false)
            case 4: value.offline = .init(blockAfter: 80, wipeAfter: 150)
            case 5: value.offline = .init(wipeAfter: 100)
            default: break
            }
            return DesiredValue(.secureServices(value))
        case .logLevel:
            let level = LogLevel.allCases[variant]
            return DesiredValue(
                .logLevel(
                    LogLevelWish(
                        level: level, duration: Self.levelDurations[variant],
                        notAfter: [3, 4].contains(variant) ? Self.levelEnd : nil,
                        code: Self.needsCode(app) ? Self.code : nil)))
        }
    }
}
