import Testing

@testable import FleetProtocol

extension SeededGenerator {
    mutating func report() throws -> PolicyReport {
        let aspect = try pick(Aspect.allCases)
        return PolicyReport(
            source: maybe { .desired($0.layer(), $0.app(), aspect) }, received: count(), applied: maybe { $0.count() },
            attempt: PolicyReport.Attempt(
                revision: count(), outcome: try pick(Outcome.allCases), message: maybe { $0.text(60) }, at: time()))
    }

    mutating func status() throws -> Status {
        Status(
            fleet: FleetID(unchecked: "demo"), device: device(), app: app(),
            order: ReportOrder(incarnation: count(), boot: count(), sequence: count()), at: time(), agent: text(9),
            sdk: text(9), isRunning: chance(50), isReady: chance(50), managed: try pick(ManagedPolicy.allCases),
            authState: try pick(AuthState.allCases), authReason: try pick(AuthReason.allCases), authMessage: text(),
            keys: try pick(Status.Keys.allCases), secureServices: try pick(SecureServicesAvailability.allCases),
            logLevel: try pick(LogLevel.allCases), events: count(),
            policies: try Policy.allCases.map { _ in try report() },
            refusals: list(0...8) { Status.Refusal(topic: $0.text(), reason: $0.text(), at: $0.time()) })
    }

    mutating func header() -> EventHeader {
        let number = number(1...JSONValue.largestInteger)
        return EventHeader(
            device: device(), app: app(), incarnation: count(), boot: count(), number: number,
            oldest: self.number(1...number),
            at: time())
    }

    mutating func event() throws -> AppEvent {
        AppEvent(
            header: header(), kind: try pick(AppEvent.Kind.allCases),
            action: try maybe { try $0.pick(AppEvent.Action.allCases) }, target: maybe { $0.text() },
            message: maybe { $0.text() })
    }

    mutating func logLevelChange() throws -> LogLevelChange {
        LogLevelChange(
            header: header(), old: try pick(LogLevel.allCases), new: try pick(LogLevel.allCases),
            why: try pick(LogLevelChange.Why.allCases), until: maybe { $0.time() })
    }

    mutating func presence() throws -> Presence {
        let online = Presence(
            state: .online, incarnation: count(), boot: count(), previousBoot: maybe { $0.count() },
            disk: maybe { $0.count() }, connection: uuid(),
            since: time(), agent: text(9),
            apps: list(0...5) {
                Presence.App(
                    id: $0.app(), sdk: $0.text(9), implements: Callback.allCases.map(\.rawValue).shuffled(using: &$0),
                    reported: $0.maybe { $0.count() })
            }, highest: maybe { Revision(epoch: $0.number(1...9), number: $0.count()) },
            documents: maybe { generator in
                generator.list(0...3) { $0.count() }.reduce(into: Presence.Documents(trust: generator.count())) {
                    $0.add($1)
                }
            }, nonce: maybe { $0.uuid() })
        return chance(30) ? online.will : online
    }

    mutating func json(depth: Int = 0) -> JSONValue {
        switch number(0...(depth < 4 ? 6 : 4)) {
        case 0: .null
        case 1: .bool(chance(50))
        case 2: .integer(number(-JSONValue.largestInteger...JSONValue.largestInteger))
        case 3: .double(Double.random(in: -1e6...1e6, using: &self))
        case 4: .string(text())
        case 5: .array(list(0...4) { $0.json(depth: depth + 1) })
        default: .object(members(depth + 1))
        }
    }

    private mutating func members(_ depth: Int) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = []
        for index in 0..<number(0...4) { members.append(JSONValue.Member("\(index)\(text(3))", json(depth: depth))) }
        return members
    }

    mutating func request() -> Request { Request(id: uuid(), replyTo: name(), notAfter: time(), body: json()) }

    mutating func response() throws -> Response {
        let failure = Response.Failure(try pick(Response.Failure.Code.allCases), text(), at: maybe { $0.text() })
        return Response(
            id: uuid(), result: chance(30) ? .failure(failure) : .success(json(), next: maybe { $0.text() }))
    }

    mutating func apply() throws -> ApplyRequest {
        ApplyRequest(
            changes: try list(0...3) {
                let aspect = try $0.pick(Aspect.allCases)
                return ApplyRequest.Change(
                    app: $0.app(), layer: $0.layer(), aspect: aspect, value: try $0.value(of: aspect),
                    basedOn: $0.maybe { $0.count() })
            }, why: maybe { $0.text() }, isAgain: chance(30))
    }

    mutating func selection() throws -> SelectionRequest {
        SelectionRequest(
            documents: try list(0...3) {
                DocumentSelector(
                    app: $0.app(), layer: $0.layer(), aspect: try $0.maybe { try $0.pick(Aspect.allCases) },
                    revision: $0.maybe { $0.number(0...1_000) })
            }, why: maybe { $0.text() })
    }

    mutating func progress() throws -> SelectionRequest {
        let selection = try selection()
        return SelectionRequest(documents: selection.documents, why: selection.why, names: chance(50))
    }

    mutating func plan() throws -> PlanRequest {
        let verb = try pick(Verb.allCases.filter(\.canBePlanned))
        let body: [UInt8] =
            switch verb {
            case .apply: try apply().json
            case .delete: try selection().json
            case .groupDelete: GroupRequest(group: group()).json
            default: groupSet().json
            }
        return PlanRequest(verb: verb, body: try JSONValue(json: body, limit: Request.maximumSize))
    }

    mutating func groupSet() -> GroupRequest {
        GroupRequest(
            group: group(), priority: maybe { $0.number(-1_000_000...1_000_000) },
            devices: maybe { $0.list(0...3) { $0.device() } }, add: list(0...3) { $0.device() },
            remove: list(0...3) { $0.device() }, why: maybe { $0.text() })
    }

    mutating func listing() throws -> ListRequest {
        ListRequest(
            app: maybe { $0.app() }, device: maybe { $0.device() }, layer: maybe { $0.layer() },
            outcome: try maybe { try $0.pick(Outcome.allCases) }, policy: try maybe { try $0.pick(Policy.allCases) },
            retirement: try maybe { try $0.pick(Retirement.allCases) },
            kind: try maybe { try $0.pick(EventKind.allCases) }, since: maybe { $0.time() }, page: maybe { $0.text() })
    }

    mutating func changeResponse() throws -> ChangeResponse {
        ChangeResponse(
            results: try list(0...3) {
                ChangeResult(
                    app: $0.app(), layer: $0.layer(), aspect: try $0.pick(Aspect.allCases), revision: $0.count(),
                    isChanged: $0.chance(50))
            }, warnings: list(0...2) { $0.text() }, epoch: maybe { $0.number(1...1_000) })
    }

    mutating func statusRow() throws -> StatusRow {
        var counts = OutcomeCounts()
        for outcome in Outcome.allCases { counts.count(outcome, number(0...100_000)) }
        return StatusRow(
            app: app(), policy: try pick(Policy.allCases), counts: counts, offline: count(), due: count(),
            retirement: maybe {
                RetirementCounts(confirmed: $0.count(), outstanding: $0.count(), doubtful: $0.count())
            })
    }
}
