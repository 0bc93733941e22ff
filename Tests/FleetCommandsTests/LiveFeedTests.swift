import FleetProtocol
import Testing

@testable import FleetCommands

@Suite("The live feed")
struct LiveFeedTests {
    private static let fleet = FleetID(unchecked: "demo")
    private static let device = DeviceID(unchecked: "till-1")
    private static let app = AppID(unchecked: "com.example.mail")
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)

    private func status(sequence: Int64, at: Timestamp, _ change: (inout [PolicyReport]) -> Void) -> Status {
        let old = Timestamp(milliseconds: 1_700_000_000_000)
        var reports = Policy.allCases.map { _ in
            PolicyReport(
                source: nil, received: 0, applied: 0, attempt: .init(revision: 0, outcome: .applied, at: old))
        }
        change(&reports)
        return Status(
            fleet: Self.fleet, device: Self.device, app: Self.app,
            order: ReportOrder(incarnation: 1, boot: 1, sequence: sequence), at: at, agent: "1", sdk: "1",
            isRunning: true, isReady: true, managed: .managed, authState: .authorized, authReason: .policy,
            authMessage: "", keys: .present, secureServices: .available, logLevel: .info, events: 0, policies: reports,
            refusals: [])
    }

    private func report(_ policy: Policy, _ revision: Int64, _ outcome: Outcome, _ at: Timestamp) -> PolicyReport {
        PolicyReport(
            source: .desired(.group(GroupID(unchecked: "kiosk")), Self.app, policy.aspect ?? .auth), received: revision,
            applied: revision, attempt: .init(revision: revision, outcome: outcome, message: "said", at: at))
    }

    private func lines(_ feed: inout LiveFeed, _ address: Address, _ payload: [UInt8]) -> [String] {
        feed.handle(topic: address.topic(in: Self.fleet), payload: payload, at: Self.now).map(\.text)
    }

    @Test("shows of a first status only what is of its moment, and then what differs")
    func acknowledgements() {
        var feed = LiveFeed(fleet: Self.fleet)
        let address = Address.reply(Self.device, Self.app, .status)
        let first = status(sequence: 1, at: Self.now) { reports in
            reports[Policy.auth.index] = report(.auth, 41, .applied, Self.now.advanced(bySeconds: -60))
            reports[Policy.config.index] = report(.config, 42, .error, Self.now)
        }
        #expect(lines(&feed, address, first.wire) == ["config 42 error (group/kiosk): said"])
        #expect(lines(&feed, address, first.wire) == [])
        let second = status(sequence: 2, at: Self.now) { reports in
            reports[Policy.auth.index] = report(.auth, 41, .applied, Self.now.advanced(bySeconds: -60))
            reports[Policy.config.index] = report(.config, 42, .applied, Self.now)
        }
        #expect(lines(&feed, address, second.wire) == ["config 42 applied (group/kiosk): said"])
        #expect(lines(&feed, address, first.wire) == [])
    }

    @Test("shows events, log levels and presence")
    func others() {
        var feed = LiveFeed(fleet: Self.fleet)
        let header = EventHeader(
            device: Self.device, app: Self.app, incarnation: 1, boot: 1, number: 2, oldest: 1, at: Self.now)
        let event = AppEvent(header: header, kind: .blocked, action: .print, message: "no")
        #expect(lines(&feed, .reply(Self.device, Self.app, .event), event.json) == ["blocked print no"])
        var next = header
        next.number = 3
        let change = LogLevelChange(header: next, old: .status, new: .debug, why: .policy)
        #expect(
            lines(&feed, .reply(Self.device, Self.app, .logLevel), change.json) == ["log level status → debug (policy)"]
        )
        let presence = Presence(
            state: .online, incarnation: 1, boot: 1, connection: .random(), since: Self.now, agent: "1.0", apps: [])
        #expect(lines(&feed, .presence(.device(Self.device)), presence.json) == ["online (1.0)"])
        #expect(
            lines(&feed, .presence(.device(Self.device)), presence.will.json)
                == ["offline"])
    }

    @Test("shows once what is sent again since nobody has stored it")
    func again() {
        var feed = LiveFeed(fleet: Self.fleet)
        func header(_ number: Int64, boot: Int64 = 1, oldest: Int64 = 1) -> EventHeader {
            EventHeader(
                device: Self.device, app: Self.app, incarnation: 1, boot: boot, number: number, oldest: oldest,
                at: Self.now)
        }
        func events(_ header: EventHeader) -> [String] {
            lines(&feed, .reply(Self.device, Self.app, .event), AppEvent(header: header, kind: .ready).json)
        }
        #expect(events(header(2)) == ["ready"])
        #expect(events(header(2, oldest: 2)) == [])
        #expect(events(header(2, boot: 2)) == ["ready"])
        let change = LogLevelChange(header: header(3), old: .status, new: .debug, why: .policy)
        let address = Address.reply(Self.device, Self.app, .logLevel)
        #expect(lines(&feed, address, change.json) == ["log level status → debug (policy)"])
        #expect(lines(&feed, address, change.json) == [])
    }

    @Test("the will of an earlier connection is nobody's word, and who says again that he is there says nothing new")
    func takeover() {
        var feed = LiveFeed(fleet: Self.fleet)
        func presence() -> Presence {
            Presence(
                state: .online, incarnation: 1, boot: 1, connection: .random(), since: Self.now, agent: "a/1", apps: [])
        }
        let address = Address.presence(.device(Self.device))
        let (old, new) = (presence(), presence())
        #expect(lines(&feed, address, old.json) == ["online (a/1)"])
        #expect(lines(&feed, address, new.json) == ["online (a/1)"])
        #expect(lines(&feed, address, old.will.json) == [])
        #expect(lines(&feed, address, new.json) == [])
        #expect(lines(&feed, address, new.will.json) == ["offline"])
        #expect(lines(&feed, address, new.json) == ["online (a/1)"])
    }

    @Test("says of what it cannot read that it cannot")
    func unreadable() {
        var feed = LiveFeed(fleet: Self.fleet)
        let address = Address.reply(Self.device, Self.app, .event)
        #expect(lines(&feed, address, Array("{".utf8)).first?.hasPrefix("unreadable event: ") == true)
        let newer =
            #"{"v":1,"device":"till-1","app":"com.example.mail","incarnation":1,"boot":1,"number":1,"oldest":1,"#
            + #""at":"2027-01-15T08:00:00.000Z","event":"exploded"}"#
        #expect(lines(&feed, address, Array(newer.utf8)).first?.contains("event: unknown value 'exploded'") == true)
        #expect(lines(&feed, address, []) == [])
        #expect(feed.handle(topic: "other", payload: [1], at: Self.now) == [])
    }

    @Test("an entry is one JSON object")
    func value() throws {
        var feed = LiveFeed(fleet: Self.fleet)
        let header = EventHeader(
            device: Self.device, app: Self.app, incarnation: 1, boot: 1, number: 2, oldest: 1, at: Self.now)
        let event = AppEvent(header: header, kind: .ready)
        let entry = try #require(
            feed.handle(
                topic: Address.reply(Self.device, Self.app, .event).topic(in: Self.fleet), payload: event.json,
                at: Self.now
            ).first)
        #expect(
            entry.value.jsonText
                == #"{"at":"2027-01-15T08:00:00.000Z","device":"till-1","app":"com.example.mail","kind":"event","text":"ready","incarnation":1,"boot":1,"number":2,"event":"ready"}"#
        )
    }
}
