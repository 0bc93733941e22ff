import FleetCommands
import FleetProtocol

/// A person with `fleetctl`: asks by its real exchange, and remembers what was answered.
final class Operator: BusClient {
    unowned let world: World
    let number: Int
    let user: User
    var name: String { "operator \(number)" }
    private(set) var connection: Connection?
    private var isReady = false
    private var readySince: Int64 = 0
    private var waiting: [Asked] = []
    private var answers: [RandomID: [UInt8]] = [:]
    /// What was asked for that changes something, and how often the controller had been put back and started then. A
    /// question may be answered anew; so may a change by a controller that has forgotten it.
    private var changes: [RandomID: (putBacks: Int, runs: Int)] = [:]
    /// Changes that a full disk refused: that answer is not kept behind the run that gave it.
    private var unkept: Set<RandomID> = []
    /// Of these it was told that the controller has not had them, and never will.
    private var undone: Set<RandomID> = []
    /// Its requests, and the last of them.
    private var ids: Set<RandomID> = []
    private var lastID: RandomID?
    /// Works on the controller's machine, and so by its clock.
    private let isBesideController: Bool

    struct Asked {
        var exchange: RequestExchange
        let until: Int64
        let topic: String
        let payload: [UInt8]
        let verb: Verb
        /// What a change was made from.
        let basedOn: (address: Address, revision: Int64)?
        let then: ((Response.Result) -> Void)?
        /// What is done when nobody has answered.
        let again: (() -> Void)?
        /// When it is to be looked at.
        var alarm: Int64?

        var id: RandomID { exchange.id }
    }

    init(_ number: Int, _ world: World) {
        self.number = number
        self.world = world
        let name = Name(unchecked: "p\(number)")
        user = number < Schedule.operators ? .operator(name) : .viewer(name)
        var any = SplitMix64(seed: world.schedule.seed ^ 0xBE51DE &+ UInt64(number))
        isBesideController = any.chance(50)
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
        let id = nextID()
        let now =
            isBesideController
            ? world.controller.clock : Timestamp(milliseconds: SimulatedFleet.begin.milliseconds + world.now)
        // A tool of somebody's own may mean to be answered for longer than answers are kept.
        let seconds: Int64 = !world.isCalm && verb.isChange && world.noise.chance(1) ? 300_000 : 60
        // In the end somebody sets the clocks right, here by the controller's, which may be fast.
        let notAfter = (world.isCalm ? max(now, world.controller.clock) : now).advanced(bySeconds: seconds)
        let request = Request(id: id, replyTo: Name(unchecked: "here"), notAfter: notAfter, body: body)
        let until = world.now + Self.lifetime
        let asked = Asked(
            exchange: RequestExchange(id: id, limit: .milliseconds(until)), until: until,
            topic: Address.request(user, verb).topic(in: SimulatedFleet.id),
            payload: request.json, verb: verb, basedOn: basedOn, then: then, again: again)
        waiting.append(asked)
        if verb.isChange { changes[id] = (world.controller.putBacks, world.controller.runs) }
        handle(isReady ? .connected : .disconnected(why: "no connection yet"), of: id)
        world.after(Self.lifetime / 2) { [unowned self] in
            // Somebody who has waited for so long does it all again.
            if waiting.contains(where: { $0.id == id }), let connection, connection.isClogged { cut() }
        }
    }

    /// Now and then somebody else has named a request so: that is another one. A hostile broker could show its answer.
    private func nextID() -> RandomID {
        var id = RandomID.random(using: &world.noise)
        var any = SplitMix64(seed: world.schedule.seed ^ UInt64(bitPattern: world.now) ^ 0x1D)
        let others = world.operators.filter { $0 !== self }
        if any.chance(6), world.schedule.broker != .hostile, let other = others[any.below(others.count)].lastID,
            !ids.contains(other)
        {
            id = other
        }
        ids.insert(id)
        lastID = id
        return id
    }

    private static let lifetime: Int64 = 60_000

    private func handle(_ event: RequestExchange.Event, of id: RandomID) {
        guard let place = waiting.firstIndex(where: { $0.id == id }) else { return }
        let effects = waiting[place].exchange.handle(event, at: .milliseconds(world.now))
        let asked = waiting[place]
        for effect in effects {
            switch effect {
            case .send: send(asked)
            case .wake(let time): wake(asked, at: time.milliseconds)
            case .finish(let outcome):
                waiting.removeAll { $0.id == id }
                finish(asked, outcome)
            }
        }
    }

    private func wake(_ asked: Asked, at time: Int64) {
        guard asked.alarm != time, let place = waiting.firstIndex(where: { $0.id == asked.id }) else { return }
        waiting[place].alarm = time
        world.after(time - world.now) { [unowned self] in
            guard let place = waiting.firstIndex(where: { $0.id == asked.id }), waiting[place].alarm == time else {
                return world.nothingHappened()
            }
            waiting[place].alarm = nil
            handle(.clock, of: asked.id)
        }
    }

    private func send(_ asked: Asked) {
        guard let connection else { return }
        world.broker.send(asked.topic, asked.payload, retain: false, on: connection) { [unowned self] reason in
            handle(.acknowledged(reason, of: asked.id), of: asked.id)
        }
    }

    private func finish(_ asked: Asked, _ outcome: RequestExchange.Outcome) {
        switch outcome {
        case .answered(let result): answered(asked, result)
        case .unanswered(let cause, var mayBeDone):
            if world.fault == .doubtNotTold { mayBeDone = false }
            checkHopeless(asked, cause)
            world.say(name, "gives up \(asked.verb.rawValue), which \(mayBeDone ? "may be" : "is not") done: \(cause)")
            world.visit("exchange", Self.name(of: cause), mayBeDone ? "may be done" : "not done")
            if !mayBeDone { undone.insert(asked.id) }
            if world.controller.asked[RequestName(user: user, id: asked.id)] != nil { came(asked.id) }
            if let again = asked.again { return again() }
            if !world.isCalm, world.noise.chance(60) { sendAgain(asked) }
        }
    }

    /// Nobody gives up while the controller has been there for long, with nothing in between.
    private func checkHopeless(_ asked: Asked, _ cause: RequestExchange.Cause) {
        let controller = world.controller
        guard cause == .noAnswer || cause == .nobodyThere, world.schedule.broker == .honest, isReady, let connection,
            controller.phase == .serving, controller.isIdle, let other = controller.connection,
            [connection, other].allSatisfy({ $0.isBrokerThere && !$0.isDead }), !world.broker.refuses(user),
            !world.broker.refuses(controller.user)
        else { return }
        let troubles =
            [connection, other].flatMap { [$0.up.heldUntil, $0.down.heldUntil] } + [
                asked.until - Self.lifetime, readySince, controller.servingSince, controller.wentOnAt,
                world.broker.stalledUntil,
            ]
        if let last = troubles.max(), world.now - last > 15_000 {
            world.fail(.ends, "\(name) gives up \(asked.verb.rawValue), and the controller was there all the time")
        }
    }

    /// Whoever asks is told in time what has become of it.
    func checkQuiet() {
        if waiting.contains(where: { $0.until < world.now }) {
            world.fail(.ends, "\(name) still waits for an answer, or for being told that there is none")
        }
    }

    /// The controller has had a request. A hostile broker may show it whatever it has said before.
    func came(_ id: RandomID) {
        if undone.contains(id), world.schedule.broker != .hostile {
            world.fail(.answered, "\(name) was told that the controller does not have a request, and it does")
        }
    }

    private static func name(of cause: RequestExchange.Cause) -> String {
        switch cause {
        case .nobodyThere: "nobody there"
        case .noAnswer: "no answer"
        case .refused: "refused"
        case .unsendable: "unsendable"
        case .connectionLost: "connection lost"
        }
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

    func subscribed(_ token: Int64, on connection: Connection) {
        guard connection === self.connection else { return }
        (isReady, readySince) = (true, world.now)
        for asked in waiting { handle(.connected, of: asked.id) }
    }

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
        // All that wait hear it, and each takes its own.
        for other in waiting where other.id != response.id {
            let isConfused = world.fault == .answersConfused
            handle(.received(isConfused ? Response(id: other.id, result: response.result).json : payload), of: other.id)
            if !waiting.contains(where: { $0.id == other.id }) {
                world.fail(.answered, "\(name) has taken the answer to another request")
            }
        }
        // Of what is waited for no more, too: it may have been done.
        if waiting.contains(where: { $0.id == response.id }) {
            handle(.received(payload), of: response.id)
        } else {
            note(response.id, nil, response.result)
        }
    }

    private func answered(_ asked: Asked, _ result: Response.Result) {
        asked.then?(result)
        note(asked.id, asked, result)
    }

    private func note(_ id: RandomID, _ asked: Asked?, _ result: Response.Result) {
        switch result {
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
            if failure.code == .unavailable { unkept.insert(id) }
            world.say(name, "is answered: \(failure.code.rawValue) \(failure.message)")
            let mayBeDoneLater = failure.code == .conflict || failure.code == .notFound
            if let asked, mayBeDoneLater, !world.isCalm, world.noise.chance(30) { sendAgain(asked) }
        }
    }

    /// What was refused, or given up, may come again, also to a controller that has started since, when it could be done.
    private func sendAgain(_ asked: Asked) {
        world.after(world.noise.milliseconds(500...20_000)) { [unowned self] in
            if !world.isCalm, world.noise.chance(50) { world.controller.kill() }
            world.after(3_000) { [unowned self] in
                guard isReady else { return }
                world.say(name, "sends the same request again")
                undone.remove(asked.id)
                send(asked)
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
        for asked in waiting {
            // Of both the client tells, in either order; of the latter also behind the next connection.
            world.after(world.noise.milliseconds(0...3_000)) { [unowned self] in
                handle(.unacknowledged(why: "lost", of: asked.id), of: asked.id)
            }
            handle(.disconnected(why: "lost"), of: asked.id)
        }
        retry()
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
