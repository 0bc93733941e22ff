package import FleetHome
package import FleetProtocol
import Mosquitto

/// The fleet's controller, as a command asks it.
package struct Controller {
    private let connection: BrokerConnection
    private let replyTo: Name
    private let events: AsyncStream<RequestExchange.Event>
    private let arrival: AsyncStream<RequestExchange.Event>.Continuation
    private let start = ContinuousClock.now

    /// How long a request is good for.
    package static let lifetime = Duration.seconds(15)

    /// Connects to the fleet's broker and runs `body` with its controller.
    package static func reach<Result>(
        _ home: FleetHome, as user: User, _ body: (Controller) async throws -> Result
    ) async throws -> Result {
        try await BrokerConnection.open(home, as: user) { connection in
            let controller = Controller(connection: connection)
            try await controller.subscribe()
            return try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await controller.pass(connection.client.messages) }
                group.addTask { await controller.pass(connection.client.states) }
                defer { group.cancelAll() }
                return try await body(controller)
            }
        }
    }

    private init(connection: BrokerConnection) {
        self.connection = connection
        replyTo = Name(unchecked: RandomID.random().text)
        (events, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1_000))
    }

    private func subscribe() async throws {
        let topic = Address.response(connection.user, replyTo).topic(in: connection.home.context.fleet)
        do {
            try await connection.client.subscribe(to: [topic])
        } catch let error as MosquittoError {
            throw CommandError(.unreachable, error.message)
        }
    }

    private func pass(_ messages: MessageSequence) async {
        for await message in messages { arrival.yield(.received(message.payload)) }
    }

    private func pass(_ states: some AsyncSequence<ConnectionState, Never> & Sendable) async {
        for await state in states {
            switch state {
            case .connected(let number):
                guard number > 1 else { continue }
                do {
                    try await subscribe()
                    arrival.yield(.connected)
                } catch {
                    arrival.yield(.disconnected(why: "\(error)"))  // The next connection brings another attempt.
                }
            case .waiting(_, let cause): arrival.yield(.disconnected(why: cause.message))
            case .connecting, .closed: break
            }
        }
    }

    // MARK: Asking

    /// Asks, and waits for the answer's body.
    package func ask(
        _ verb: Verb, _ body: some JSONWritable, within lifetime: Duration = lifetime
    ) async throws -> JSONValue {
        try await page(verb, body, within: lifetime).body
    }

    /// Asks for the pages of a list, until there are no more or enough rows, and joins them.
    func list(_ verb: Verb, _ request: ListRequest, atMost limit: Int = .max) async throws -> [JSONValue] {
        let member = verb == .status ? "rows" : verb.rawValue
        var request = request
        var result: [JSONValue] = []
        repeat {
            let page = try await page(verb, request)
            guard let elements = page.body[member]?.arrayValue else {
                throw CommandError(.unreachable, "the controller's answer to '\(verb.rawValue)' has no '\(member)'")
            }
            result += elements
            guard page.next == nil || page.next != request.page else {
                throw CommandError(.unreachable, "the controller's answer to '\(verb.rawValue)' never comes to an end")
            }
            request.page = page.next
        } while request.page != nil && result.count < limit
        return Array(result.prefix(limit))
    }

    /// Asks for one page.
    func page(
        _ verb: Verb, _ body: some JSONWritable, within lifetime: Duration = lifetime
    ) async throws -> (body: JSONValue, next: String?) {
        let id = RandomID.random()
        let bytes = body.json
        let request = Request(
            id: id, replyTo: replyTo,
            notAfter: Timestamp.now.advanced(bySeconds: lifetime.components.seconds),
            body: try JSONValue(json: bytes, limit: bytes.count)
        ).json
        guard request.count <= Request.maximumSize else {
            throw CommandError(
                .refused,
                "the request has \(request.count) bytes, where at most \(Request.maximumSize) are allowed: split it")
        }
        let topic = Address.request(connection.user, verb).topic(in: connection.home.context.fleet)
        switch await exchange(id, request, topic, lifetime) {
        case .answered(.success(let body, let next)): return (body, next)
        case .answered(.failure(let failure)): throw Self.error(failure)
        case .unanswered(let cause, let mayBeDone):
            throw Self.error(cause, mayBeDone: mayBeDone, verb, connection.home, connection.user)
        }
    }

    private func exchange(_ id: RandomID, _ request: [UInt8], _ topic: String, _ lifetime: Duration) async
        -> RequestExchange.Outcome
    {
        var exchange = RequestExchange(id: id, limit: ContinuousClock.now - start + lifetime)
        return await withTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            var effects = exchange.handle(.connected, at: ContinuousClock.now - start)
            var iterator = events.makeAsyncIterator()
            while true {
                for effect in effects {
                    switch effect {
                    case .send: group.addTask { await send(request, id, to: topic) }
                    case .wake(let time):
                        group.addTask {
                            guard (try? await Task.sleep(until: start + time)) != nil else { return }
                            arrival.yield(.clock)
                        }
                    case .finish(let outcome): return outcome
                    }
                }
                guard let event = await iterator.next() else {
                    return .unanswered(.connectionLost(why: "the command was cancelled"), mayBeDone: true)
                }
                effects = exchange.handle(event, at: ContinuousClock.now - start)
            }
        }
    }

    private func send(_ request: [UInt8], _ id: RandomID, to topic: String) async {
        do {
            arrival.yield(.acknowledged(try await connection.client.publish(request, to: topic).rawValue, of: id))
        } catch let error as MosquittoError where error.code == .payloadTooLarge || error.code == .invalidArgument {
            arrival.yield(.unsendable(why: error.message, of: id))
        } catch {
            arrival.yield(.unacknowledged(why: "\(error)", of: id))
        }
    }
}
