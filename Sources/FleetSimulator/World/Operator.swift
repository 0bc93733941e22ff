import FleetProtocol

/// A person with `fleetctl`: asks, sends the same bytes again until there is an answer, and remembers what was answered.
final class Operator: BusClient {
    unowned let world: World
    let number: Int
    let user: User
    var name: String { "operator \(number)" }
    private(set) var connection: Connection?
    private var isReady = false
    private var waiting: [Asked] = []
    private var answers: [RandomID: [UInt8]] = [:]
    /// What was asked for that changes something, and how often the controller had been put back and started then. A
    /// question may be answered anew; so may a change by a controller that has forgotten it.
    private var changes: [RandomID: (putBacks: Int, runs: Int)] = [:]
    /// Changes that a full disk refused: that answer is not kept behind the run that gave it.
    private var unkept: Set<RandomID> = []

    struct Asked {
        let id: RandomID
        let topic: String
        let payload: [UInt8]
        let until: Int64
        let verb: Verb
        /// What a change was made from.
        let basedOn: (address: Address, revision: Int64)?
        let then: ((Response.Result) -> Void)?
        /// What is done when nobody has answered.
        let again: (() -> Void)?
    }

    init(_ number: Int, _ world: World) {
        self.number = number
        self.world = world
        let name = Name(unchecked: "p\(number)")
        user = number < Schedule.operators ? .operator(name) : .viewer(name)
    }

    func start() { connect() }

    func cut() {
        guard let connection else { return }
        world.broker.cut(connection, noticedAfter: 0)
        lost(connection)
    }

    func ask(
        _ verb: Verb, _ body: JSONValue, basedOn: (address: Address, revision: Int64)? = nil,
        again: (() -> Void)? = nil, then: ((Response.Result) -> Void)? = nil
    ) {
        let id = RandomID.random(using: &world.noise)
        // In the end somebody sets the clocks right, here by the controller's, which may be fast.
        let now = Timestamp(milliseconds: SimulatedFleet.begin.milliseconds + world.now)
        // A tool of somebody's own may mean to be answered for longer than answers are kept.
        let seconds: Int64 = !world.isCalm && verb.isChange && world.noise.chance(1) ? 300_000 : 60
        let notAfter = (world.isCalm ? max(now, world.controller.clock) : now).advanced(bySeconds: seconds)
        let request = Request(id: id, replyTo: Name(unchecked: "here"), notAfter: notAfter, body: body)
        let asked = Asked(
            id: id, topic: Address.request(user, verb).topic(in: SimulatedFleet.id), payload: request.json,
            until: world.now + 60_000, verb: verb, basedOn: basedOn, then: then,
            again: again)
        waiting.append(asked)
        if verb.isChange { changes[id] = (world.controller.putBacks, world.controller.runs) }
        send(asked)
    }

    private func send(_ asked: Asked) {
        guard waiting.contains(where: { $0.id == asked.id }) else { return }
        guard world.now < asked.until else {
            guard let again = asked.again else { return }
            waiting.removeAll { $0.id == asked.id }
            return again()
        }
        // Somebody who has waited for so long does it all again.
        if asked.until - world.now < 30_000, let connection, connection.isClogged { cut() }
        if isReady, let connection { world.broker.send(asked.topic, asked.payload, retain: false, on: connection) }
        world.after(world.noise.milliseconds(1_000...4_000)) { [unowned self] in send(asked) }
    }

    private func connect() {
        guard connection == nil else { return }
        guard let made = world.broker.connect(self, will: nil) else { return retry() }
        connected(made)
    }

    private func retry() {
        world.after(world.noise.milliseconds(100...1_000)) { [unowned self] in connect() }
    }

    /// Its connection has it too.
    func takeApart() { connection = nil }

    func connected(_ connection: Connection) {
        self.connection = connection
        world.broker.subscribe(
            [TopicFilter.responses(user).text(in: SimulatedFleet.id)], token: 1, on: connection)
    }

    func subscribed(_ token: Int64, on connection: Connection) { isReady = connection === self.connection }

    func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, on connection: Connection) {
        guard let response = try? Response(json: payload, limit: Response.maximumSize) else {
            return world.fail(.total, "an answer cannot be read: \(String(decoding: payload, as: UTF8.self))")
        }
        if let known = answers[response.id] {
            // After a day, by a clock that was set, an answer is forgotten: the request is refused then, not done again.
            if known != payload, mustKeep(response.id), case .success = response.result {
                world.fail(.answered, "one request was answered in two ways")
            }
            return
        }
        answers[response.id] = payload
        let asked = waiting.first { $0.id == response.id }
        waiting.removeAll { $0.id == response.id }
        asked?.then?(response.result)
        switch response.result {
        case .success(let body, _):
            world.say(name, "is answered: done")
            if case .viewer = user, asked?.verb.isChange == true {
                world.fail(.answered, "somebody who may only look has changed something")
            }
            world.visit("request", asked?.verb.rawValue ?? "unknown", "ok")
            if asked?.verb.isChange == true,
                let change = try? ChangeResponse(json: body.json, limit: Response.maximumSize)
            {
                world.controller.promised(change, basedOn: asked?.basedOn)
            }
        case .failure(let failure):
            world.visit("request", asked?.verb.rawValue ?? "unknown", "refused")
            if failure.code == .unavailable { unkept.insert(response.id) }
            world.say(name, "is answered: \(failure.code.rawValue) \(failure.message)")
            let mayBeDoneLater = failure.code == .conflict || failure.code == .notFound
            if let asked, mayBeDoneLater, !world.isCalm, world.noise.chance(30) { sendAgain(asked) }
        }
    }

    /// What was refused may come again, also to a controller that has started since, when it could be done.
    private func sendAgain(_ asked: Asked) {
        world.after(world.noise.milliseconds(500...20_000)) { [unowned self] in
            if !world.isCalm, world.noise.chance(50) { world.controller.kill() }
            world.after(3_000) { [unowned self] in
                guard isReady, let connection else { return }
                world.say(name, "sends again what was refused")
                world.broker.send(asked.topic, asked.payload, retain: false, on: connection)
            }
        }
    }

    /// Whether the controller must still know how it answered a change.
    private func mustKeep(_ id: RandomID) -> Bool {
        guard let asked = changes[id], asked.putBacks == world.controller.putBacks else { return false }
        return !unkept.contains(id) || asked.runs == world.controller.runs
    }

    func lost(_ connection: Connection) {
        guard connection === self.connection else { return }
        self.connection = nil
        isReady = false
        retry()
    }
}
