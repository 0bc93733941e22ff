import FleetProtocol

extension ControllerCore {
    /// Answers a request: once per id, whatever comes.
    mutating func request(_ message: Message, _ turn: inout Turn) throws {
        guard case .request(let user, let verb)? = Address(topic: message.topic, in: identity.fleetID),
            !message.payload.isEmpty
        else { return }
        let request: Request
        do {
            request = try Request(json: message.payload, limit: Request.maximumSize)
        } catch {
            return try refuse(message, verb, from: user, error, &turn)
        }
        let key = AnswerCache.Key(user: user, id: request.id)
        let response = try response(to: .success(request), verb, key, &turn)
        turn.publish(identity.topic(.response(user, request.replyTo)), response, retain: false)
    }

    /// - Parameter request: Why not, where all that can be read of it is who asks and its id: it may be what is left of one that
    ///   has been answered, or that comes whole as well.
    private mutating func response(
        to request: Result<Request, Response.Failure>, _ verb: Verb, _ key: AnswerCache.Key, _ turn: inout Turn
    ) throws -> [UInt8] {
        if let answer = answers[key] { return answer }
        do {
            if verb.isChange, let answer = try store.transaction({ try $0.response(to: key.id, of: key.user) }) {
                // Whoever enrols a device and asks again writes it down only now.
                if verb == .enroll, case .success(let request) = request {
                    try noteEnrolment(request, answered: answer, at: turn.now)
                }
                return answer
            }
            // First of all: whoever may change nothing has no refusals kept either.
            try Self.checkRight(of: key.user, to: verb)
            let request = try request.get()
            guard request.notAfter > turn.now else {
                throw Response.Failure(
                    .expired,
                    "the request came at \(turn.now), after its notAfter: the clocks differ, or it took too long")
            }
            // What could come again when its answer is forgotten would be done twice.
            guard !verb.isChange || request.notAfter <= turn.now.advanced(bySeconds: Self.answerLife) else {
                throw Response.Failure(
                    .invalid,
                    "the request came at \(turn.now), more than a day before its notAfter: the clocks differ, or it is"
                        + " meant to be sent again for longer than its answer is kept", at: "notAfter")
            }
            if verb.isChange { return try change(request, verb, by: key.user, &turn) }
            let answer = try read(request.body, verb, by: key.user, now: turn.now).response(to: request.id)
            answers.keep(answer, for: key)
            return answer
        } catch let error as Response.Failure {
            return try refusal(error, of: verb, key, &turn)
        } catch let error as FleetProtocolError {
            return refusal(Response.Failure(error), key)
        } catch let error as FleetControllerError where error.code != .corrupt {
            return notCarriedOut(verb, key, error, &turn)
        }
    }

    /// What cannot be kept is not said: behind a restart the change might be done.
    private mutating func refusal(
        _ failure: Response.Failure, of verb: Verb, _ key: AnswerCache.Key, _ turn: inout Turn
    ) throws -> [UInt8] {
        if verb.isChange, failure.isKept {
            let response = Response(id: key.id, result: .failure(failure)).json
            do {
                try store.transaction { try $0.keep(response, to: key.id, of: key.user, at: turn.now) }
            } catch let error as FleetControllerError where error.code != .corrupt {
                return notCarriedOut(verb, key, error, &turn)
            }
        }
        return refusal(failure, key)
    }

    private mutating func notCarriedOut(
        _ verb: Verb, _ key: AnswerCache.Key, _ error: FleetControllerError, _ turn: inout Turn
    ) -> [UInt8] {
        turn.log(.error, "a request could not be carried out", ["verb": "\(verb.rawValue)", "error": "\(error)"])
        return refusal(Response.Failure(.unavailable, "the controller's store: \(error.message)"), key)
    }

    private mutating func noteEnrolment(_ request: Request, answered answer: [UInt8], at now: Timestamp) throws {
        let response = try Response(json: answer, limit: Response.maximumSize)
        guard case .success(let body, _) = response.result else { return }
        let request = try DeviceRequest(json: request.body.json, limit: Request.maximumSize)
        // Answers of earlier versions do not name it.
        let next = body["incarnation"]?.integerValue ?? request.incarnation
        schedule.noteEnrolment(of: request.device, as: next ?? (enrolments[request.device] ?? 0) + 1, at: now)
    }

    private static func checkRight(of user: User, to verb: Verb) throws {
        switch (user, verb.isChange) {
        case (.operator, _), (.viewer, false): break
        case (.viewer, true):
            throw Response.Failure(.forbidden, "\(user.text) may read, and \(verb.rawValue) is a change")
        default: throw Response.Failure(.forbidden, "\(user.text) is no operator or viewer")
        }
    }

    /// The same request, come again, must not be carried out behind the operator's back.
    private mutating func refusal(_ failure: Response.Failure, _ key: AnswerCache.Key) -> [UInt8] {
        let response = Response(id: key.id, result: .failure(failure)).json
        answers.keep(response, for: key)
        return response
    }

    /// Carries out a change in one transaction with the answer to it, then publishes what it has issued.
    private mutating func change(_ request: Request, _ verb: Verb, by user: User, _ turn: inout Turn) throws -> [UInt8]
    {
        let body = request.body.json
        let (outcome, response) = try store.transaction { transaction in
            let outcome = try ChangeOutcome(
                verb, body: body, by: user, identity: identity, transaction: transaction, enrolments: enrolments,
                schedule: schedule, now: turn.now)
            let response = try outcome.answer.response(to: request.id)
            try transaction.keep(response, to: request.id, of: user, at: turn.now)
            return (outcome, response)
        }
        turn.effects += outcome.effects(identity)
        for document in outcome.issued { publish(document, &turn) }
        for device in outcome.removed {
            phase.serving?.forget(device)
            // Whoever asks has taken it out of the home before.
            enrolments[device] = nil
            turn.log(.notice, "removed a device", ["device": "\(device)", "user": "\(user.text)"])
        }
        if let (device, incarnation) = outcome.enrolling {
            schedule.noteEnrolment(of: device, as: incarnation, at: turn.now)
        }
        if let last = outcome.issued.last {
            turn.log(
                .info, "applied a change",
                [
                    "verb": "\(verb.rawValue)", "user": "\(user.text)", "revision": "\(last.revision)",
                    "documents": "\(outcome.issued.count)",
                ])
        }
        return response
    }

    /// What cannot be read is answered as far as it says where to.
    private mutating func refuse(
        _ message: Message, _ verb: Verb, from user: User, _ error: any Error, _ turn: inout Turn
    ) throws {
        let failure =
            (error as? FleetProtocolError).map(Response.Failure.init)
            ?? Response.Failure(.invalid, "\(error)")
        guard let (id, replyTo) = Self.asker(message) else {
            return turn.log(
                .warning, "a request cannot be read",
                [
                    "user": "\(user.text)", "reason": "\(Text.printable("\(error)", limit: 300))",
                ])
        }
        let response = try response(to: .failure(failure), verb, AnswerCache.Key(user: user, id: id), &turn)
        turn.publish(identity.topic(.response(user, replyTo)), response, retain: false)
    }

    /// A question that only a later version knows is answered so: who asked would wait for an answer, and not know why none comes.
    func refuseUnknown(_ message: Message, _ turn: inout Turn) {
        let prefix = Address.prefix(of: identity.fleetID) + "control/request/"
        guard message.topic.hasPrefix(prefix) else { return }
        let levels = message.topic.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count == 2, let user = User(String(levels[0])), let (id, replyTo) = Self.asker(message) else {
            return
        }
        let verb = Text.printable(String(levels[1]), limit: 48)
        let failure = Response.Failure(
            .invalid, "the controller does not know '\(verb)': it is of an earlier version, \(fleetbusVersion)")
        turn.publish(
            identity.topic(.response(user, replyTo)), Response(id: id, result: .failure(failure)).json, retain: false)
    }

    /// Whom to answer, as far as it can be read.
    private static func asker(_ message: Message) -> (id: RandomID, replyTo: Name)? {
        var id: RandomID?
        var replyTo: Name?
        _ = try? JSONReader.read(message.payload, limit: Response.maximumSize * 8) { reader in
            try reader.object { name, value in
                switch name {
                case "id": id = try value.value()
                case "replyTo": replyTo = try value.value()
                default: break
                }
            }
        }
        guard let id, let replyTo else { return nil }
        return (id, replyTo)
    }
}

extension Response.Failure {
    /// A mistake in the request's JSON, at its member.
    init(_ error: FleetProtocolError) {
        self.init(
            error.code == .tooLarge ? .tooLarge : .invalid, error.message, at: error.path.isEmpty ? nil : error.path)
    }

    /// Whether the store keeps it for the same change that comes again behind a restart: what the fleet's state or the
    /// clock has refused is not done later. Who may change anything stays so, and a disk that is full keeps nothing.
    fileprivate var isKept: Bool {
        switch code {
        case .invalid, .conflict, .notFound, .tooLarge, .expired: true
        case .forbidden, .unavailable: false
        }
    }
}
