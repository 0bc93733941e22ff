import DeviceAgent
import FleetController
import FleetHome
import FleetProtocol

extension Controller {
    /// An operator was answered that this is changed.
    func promised(_ change: ChangeResponse, basedOn: (address: Address, revision: Int64)?) {
        // An answer that was under way while a backup was put back speaks of what is lost with the rest.
        let latest = (try? store.latest().number) ?? 0
        answeredEpoch = max(answeredEpoch, change.epoch ?? .max)  // Where none is told, no later one tells anything.
        for result in change.results where result.isChanged && result.revision <= latest {
            let address = Address.desired(result.layer, result.app, result.aspect)
            // Its number was given out again since, to another.
            if let change = desired.changes[result.revision], change.address != address { continue }
            promises[address] = max(promises[address] ?? 0, result.revision)
            answered[address, default: []].insert(result.revision)
            if let basedOn, basedOn.address == address { based.append((address, basedOn.revision, result.revision)) }
        }
    }

    /// What was made from a revision that somebody else had replaced by then was refused.
    func checkBases() {
        for change in based {
            guard let other = answered[change.address]?.first(where: { $0 > change.from && $0 < change.to }) else {
                continue
            }
            world.fail(
                .answered,
                "\(change.address.path): \(change.to) was made from \(change.from), and took \(other) back unseen")
        }
    }

    struct Asked {
        let user: User
        let verb: Verb
        let body: [UInt8]
        /// Until when it may be done.
        let notAfter: Timestamp
    }

    /// Whatever is done to its clock, a heartbeat goes every minute: without one devices are out of contact.
    func checkBeats(_ effects: [ControllerCore.Effect]) {
        let silence = world.now - beatAt
        guard phase == .serving, connection != nil, silence > 122_000 + beatDelay else { return }
        let isBeating = effects.contains { if case .publish(Self.heartbeats, _, _) = $0 { true } else { false } }
        if !isBeating { world.fail(.limits, "the controller has not been heard for \(silence) ms, and says nothing") }
    }

    /// It has been woken, and will be again.
    func checkAlarm() {
        guard phase == .serving, connection != nil, !isAlarmSet else { return }
        world.fail(.limits, "the controller is woken by nothing any more but what it is told")
    }

    /// What is stored is told a device once a second at most, by a clock that nobody has set since.
    func checkMarks(_ topic: String) {
        guard topic.contains("/received/"),
            case .received(let device)? = Address(topic: topic, in: SimulatedFleet.id)
        else { return }
        if let last = markedAt[device], last < world.now, world.now - last < 1_000, clockSetAt < last {
            world.fail(
                .bounded, "\(device) is told which events are stored, \(world.now - last) ms after the last time")
        }
        markedAt[device] = world.now
    }

    /// What a broker has kept from before puts nothing back, also of a device that was taken out and enrolled again.
    func checkOrders() {
        guard watch.isReadingBack, isUp, world.violation == nil, let stored = try? store.orders() else { return }
        watch.isReadingBack = false
        for (place, order) in stored.sorted(by: { ($0.key.device, $0.key.app) < ($1.key.device, $1.key.app) }) {
            // What a hostile broker says live for an app that is forgotten is taken for a copy's.
            let isCopied = world.areReportsReplayed && order.incarnation < enrolments[place.device] ?? .max
            if let before = orders[place], order < before, !isCopied {
                world.fail(.order, "the status of \(place.app) on \(place.device) went from \(before) back to \(order)")
            }
            if let last = removed[place.device], order.incarnation <= last, isRemoved(place.device, order.incarnation) {
                world.fail(.gone, "\(place.device) was taken out of the fleet, and its status \(order) is shown again")
            }
        }
        orders.merge(stored) { max($0, $1) }
    }

    static func tellsOfLoss(_ topic: String, _ payload: [UInt8]) -> Bool {
        guard topic.contains("/hello/"), let hello = try? Hello(wire: payload)
        else { return false }
        return !hello.lost.isEmpty
    }

    static let heartbeats = Address.heartbeat.topic(in: SimulatedFleet.id)
    static let requests = Address.prefix(of: SimulatedFleet.id) + "control/request/"
    private static let responses = Address.prefix(of: SimulatedFleet.id) + "control/response/"

    func noteRequest(_ topic: String, _ payload: [UInt8]) {
        guard topic.hasPrefix(Self.requests), !payload.isEmpty,
            case .request(let user, let verb)? = Address(topic: topic, in: SimulatedFleet.id),
            let request = try? Request(json: payload, limit: Request.maximumSize)
        else { return }
        let name = RequestName(user: user, id: request.id)
        heard.insert(name)
        asked[name] = Asked(user: user, verb: verb, body: request.body.json, notAfter: request.notAfter)
        for person in world.operators where person.user == user { person.came(request.id) }
    }

    /// What is answered for is in the store, as it was asked for, and nothing else; nothing is done for a request whose
    /// time is over.
    func checkAnswers(
        _ effects: [ControllerCore.Effect], _ before: DesiredModel.Strangers, _ standing: DesiredModel.Standing?
    ) {
        var isChanged = false
        var strangers = before
        if effects.contains(where: Self.isResponse) { strangers.after = self.strangers }
        for case .publish(let topic, let payload, _) in effects where topic.hasPrefix(Self.responses) {
            guard let response = try? Response(json: payload, limit: Response.maximumSize),
                let name = RequestName(response, at: topic)
            else { continue }
            guard let request = asked[name] else {
                // Only what is left of it has come.
                desired.refused(response, to: name)
                continue
            }
            let isDone = desired.isDone(name)
            do {
                if let standing, let problem = try desired.problem(in: response, standing) {
                    world.fail(.answered, problem)
                }
                if let plan = standing?.plan, !desired.isAnswered(name) { try check(plan, response) }
                if let said = standing?.lastSaid, !desired.isAnswered(name), case .success = response.result {
                    try checkRemoval(request, of: said)
                }
                heard.remove(name)
                // What is a day old is remembered by the process alone.
                if !desired.isAnswered(name), case .failure(let failure) = response.result,
                    Self.isKept(failure.code), request.verb.isChange,
                    try !store.keepsAnswer(to: response.id, of: request.user)
                {
                    world.fail(
                        .answered, "\(request.verb.rawValue) is answered \(failure.code.rawValue), and that is not kept"
                    )
                }
                let before = desired
                let problem = try desired.answered(
                    response, to: request.verb, request.body, of: request.user, strangers: strangers)
                if let problem { world.fail(.answered, problem) }
                let isKept = if case .failure(let failure) = response.result { Self.isKept(failure.code) } else { true }
                if request.verb.isChange, isKept, keptSince[name] == nil { keptSince[name] = world.now }
                if !isDone, case .success = response.result {
                    if let standing { try checkOrder(ofGroup: request, standing, since: before) }
                    if request.verb == .deviceRemove { try noteKeys(of: request, standing?.keys) }
                }
            } catch {
                world.fail(.answered, "the answer to \(request.verb.rawValue) cannot be read: \(error)")
            }
            guard !isDone, case .success(let answer, _) = response.result else { continue }
            if request.verb == .enroll, let floors = try? Floors(json: answer.json, limit: Response.maximumSize),
                let device = try? DeviceRequest(json: request.body, limit: Request.maximumSize).device
            {
                enrolling[device] = (floors.incarnation, world.now)
            }
            if request.verb == .enroll, effects.count(where: Self.isResponse) == 1 {
                try? checkFloors(answer, for: DeviceRequest(json: request.body, limit: Request.maximumSize).device)
            }
            if request.verb.isChange {
                isChanged = true
                layers.look(at: desired, of: world, at: clock)
            }
            if request.verb.isChange, request.notAfter > clock.advanced(bySeconds: 86_400) {
                world.fail(.answered, "a change was made that may come again when its answer is forgotten")
            }
            if request.notAfter < clock { world.fail(.answered, "a request was done after its time") }
        }
        guard isChanged else { return }
        checkDesired()
        // Nobody is late with what was just said. One that stops has read no further.
        let isStopping = effects.contains { if case .stop = $0 { true } else { false } }
        if world.now % 4 == 0, !isStopping { world.checkCounts() }
    }

    /// What was answered is kept for a day; where somebody sets the clock, at least until it has gone evenly for some hours: who
    /// asks again hears the same, and no change is made twice. A backup may know of less.
    func checkKept() throws {
        guard !wasPutBack else { return }
        let time = isPunctual ? Self.keptFor : Self.keptUnevenly
        for (name, at) in keptSince.sorted(by: { ($0.value, $0.key.id.text) < ($1.value, $1.key.id.text) }) {
            let age = world.now - at
            guard try age < time && !store.keepsAnswer(to: name.id, of: name.user) else { continue }
            world.fail(
                .answered, "\(name.user.text) was answered \(age / 3_600_000) h ago, and that is not kept any more")
        }
    }

    /// A day, but for an hour.
    private static let keptFor: Int64 = 82_800_000
    private static let keptUnevenly: Int64 = 5 * 3_600_000

    /// Devices that the store has never heard of.
    private var strangers: Set<DeviceID> {
        Set(world.machines.map(\.id).filter { (try? store.device($0)) == nil })
    }

    /// The same, where something may be answered.
    func strangers(before event: ControllerCore.Event) -> DesiredModel.Strangers {
        guard case .messages(let messages) = event,
            phase == .looking || messages.contains(where: { $0.topic.hasPrefix(Self.requests) })
        else { return DesiredModel.Strangers() }
        let heard = messages.compactMap { message in
            switch Address(topic: message.topic, in: SimulatedFleet.id) {
            case .presence(.device(let device)), .reply(let device, _, _): device
            default: nil
            }
        }
        let removed = self.heard.compactMap { asked[$0] }.filter { $0.verb == .deviceRemove }.compactMap {
            try? DeviceRequest(json: $0.body, limit: Request.maximumSize).device
        }
        return DesiredModel.Strangers(before: strangers, heard: Set(heard), removed: Set(removed))
    }

    /// What stands before a change is looked at that came alone, where nothing hinders that it is.
    func standing(before event: ControllerCore.Event) -> DesiredModel.Standing? {
        guard phase == .serving, roomLeft == nil, case .messages(let messages) = event else { return nil }
        let requests = messages.filter { $0.topic.hasPrefix(Self.requests) }
        guard requests.count == 1,
            let request = try? Request(json: requests[0].payload, limit: Request.maximumSize),
            case .request(let user, _)? = Address(topic: requests[0].topic, in: SimulatedFleet.id),
            let asked = asked[RequestName(user: user, id: request.id)], asked.verb.isChange,
            let wishes = try? store.wishes()
        else { return nil }
        let revisions = wishes.map { ($0.address, $0.revision.number) }
        let enrolled = world.machines.compactMap { machine in
            (try? store.device(machine.id))?.enrolled.map { (machine.id, $0) }
        }
        // What the home has not (any more) is out of the fleet, whichever removal is the last to say so.
        let spoken = world.machines.filter { enrolments[$0.id] != nil }.compactMap { machine in
            (try? store.device(machine.id)).map { (machine.id, $0.incarnation) }
        }
        return DesiredModel.Standing(
            asked: asked, revisions: Dictionary(revisions) { $1 }, enrolled: Dictionary(enrolled) { $1 },
            spoken: Dictionary(spoken) { $1 },
            given: Dictionary(world.machines.map { ($0.id, $0.enrollment.incarnation) }) { $1 },
            enrolling: enrolling.filter { clockSetAt < $0.value.at && world.now - $0.value.at < 9_000 }
                .mapValues(\.incarnation),
            holding: messages.count == 1 ? holding(asked) : nil,
            unconfirmed: messages.count == 1 ? unconfirmed(asked, wishes) : nil,
            doubted: messages.count == 1 ? doubted(asked, wishes) : nil,
            leaving: messages.count == 1 ? leaving(asked) : nil, clock: clock,
            plan: messages.count == 1 ? plan(asked, messages[0]) : nil,
            lastSaid: messages.count == 1 ? lastSaid(asked) : nil,
            keys: messages.count == 1 ? keysOfRemoved(asked) : nil)
    }

    func holding(_ asked: Asked) -> [AppID]? {
        guard asked.verb == .deviceRemove,
            let device = try? DeviceRequest(json: asked.body, limit: Request.maximumSize).device
        else { return nil }
        let present = try? store.statuses(in: SimulatedFleet.id).filter { $0.device == device && $0.keys == .present }
        let left = try? store.leftKeys(of: device)
        return present.flatMap { present in left.map { Set(present.map(\.app) + $0).sorted() } }
    }

    private func unconfirmed(_ asked: Asked, _ wishes: [FleetStore.Wish]) -> [Address: Int]? {
        guard let ended = try? desired.retirements(endedBy: asked) else { return nil }
        guard !ended.isEmpty, let statuses = try? store.statuses(in: SimulatedFleet.id) else { return nil }
        var layers: [DeviceID: SaidLayers] = [:]
        for device in Set(statuses.map(\.device)) { layers[device] = SaidLayers(wishes, of: device) }
        var counts: [Address: Int] = [:]
        for (address, leaving) in ended {
            guard let (layer, app) = address.layerAndApp else { continue }
            counts[address] = statuses.count { status in
                guard status.app == app, leaving?.contains(status.device) ?? true, let said = layers[status.device],
                    said.retire(app, by: [layer])
                else { return false }
                return Standing(status, said).retirement == .outstanding
            }
        }
        return counts
    }

    private func leaving(_ asked: Asked) -> [(app: AppID, devices: Int)]? {
        guard asked.verb == .groupSet, let ended = try? desired.retirements(endedBy: asked) else { return nil }
        return ended.compactMap { address, leaving -> (app: AppID, devices: Int)? in
            guard let app = address.layerAndApp?.app, let leaving else { return nil }
            let devices = leaving.count { (try? store.leftKeys(of: $0))?.contains(app) ?? false }
            return devices > 0 ? (app, devices) : nil
        }.sorted { $0.app < $1.app }
    }

    private static func isKept(_ code: Response.Failure.Code) -> Bool {
        [.conflict, .notFound, .invalid, .expired].contains(code)
    }

    private static func isResponse(_ effect: ControllerCore.Effect) -> Bool {
        if case .publish(let topic, _, _) = effect { topic.hasPrefix(responses) } else { false }
    }

    /// What has come is answered once all is read: nobody has to ask twice.
    func checkAnswered() {
        guard phase == .serving, inbox.isEmpty, connection != nil,
            let name = heard.min(by: { ($0.user.text, $0.id.text) < ($1.user.text, $1.id.text) })
        else { return }
        heard = []
        world.fail(.answered, "\(asked[name]?.verb.rawValue ?? "a request") of \(name.user.text) is not answered")
    }

    /// A device that is enrolled learns of all that it will read how new it is.
    private func checkFloors(_ answer: JSONValue, for device: DeviceID) throws {
        let floors = try Floors(json: answer.json, limit: Response.maximumSize)
        let told = Dictionary(floors.topics.map { ($0.topic, Revision(epoch: $0.epoch, number: $0.revision)) }) { $1 }
        let groups = desired.groups.filter { $0.value.members.contains(device) }.keys
        let readable = try store.wishes().filter { wish in
            switch wish.address {
            case .desired(.all, _, _), .membership(device), .desired(.device(device), _, _): true
            case .desired(.group(let group), _, _), .groupMeta(let group): groups.contains(group)
            default: false
            }
        }
        let real = Dictionary(readable.map { ($0.address.topic(in: SimulatedFleet.id), $0.revision) }) { $1 }
        let epoch = try store.latest().epoch
        if floors.epoch != epoch {
            world.fail(.order, "\(device) is enrolled in epoch \(floors.epoch), and it is \(epoch)")
        }
        if told != real { world.fail(.order, "\(device) is enrolled and told of \(told), and reads \(real)") }
    }

    func checkDesired() {
        do {
            let difference = try desired.difference(
                from: store, forgetsTombstones: world.schedule.forgetsTombstones)
            if let difference { world.fail(.answered, difference) }
        } catch {
            world.fail(.total, "\(error)")
        }
    }

    func visit(_ event: ControllerCore.Event) {
        guard let coverage = world.coverage else { return }
        switch event {
        case .connected: coverage.count("controller", "connected", phase.rawValue)
        case .disconnected: coverage.count("controller", "disconnected", phase.rawValue)
        case .tick: coverage.count("controller", "tick", phase.rawValue)
        case .refused: coverage.count("controller", "refused", phase.rawValue)
        case .enrolments: coverage.count("controller", "enrolments", phase.rawValue)
        case .messages(let messages):
            for message in messages {
                coverage.count("controller", Coverage.kind(of: message.topic), phase.rawValue)
            }
        }
    }
}
