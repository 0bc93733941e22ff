import FleetProtocol

/// How a device-app is counted: held against what is wanted now.
struct CountedApp {
    let connection: Connectivity
    /// By the policies' indices.
    let outcomes: [Outcome]
    let retirement: Retirement?

    init(_ rows: Tally.Rows, _ tally: inout Tally) {
        connection = rows.connection
        outcomes = Policy.allCases.map { tally.outcome(of: $0, rows) }
        retirement = tally.retirement(of: rows)
    }

    func matches(_ request: ListRequest) -> Bool {
        if let retirement = request.retirement, retirement != self.retirement { return false }
        guard let outcome = request.outcome else { return true }
        let asked = request.policy.map { [outcomes[$0.index]] } ?? outcomes
        return asked.contains { $0 == outcome || $0.counted == outcome }
    }
}

/// Counts device-apps for one answer: most are alike, and those are counted once.
struct AppCounts {
    let transaction: FleetStore.Transaction
    let now: Timestamp
    private var tallies: [AppID: Tally] = [:]
    private var known: [Tally.Rows: CountedApp] = [:]
    private var doubtful: [AppID: Set<DeviceID>] = [:]

    init(transaction: FleetStore.Transaction, now: Timestamp) {
        self.transaction = transaction
        self.now = now
    }

    /// - Parameter app: The one that the shape of `rows` belongs to.
    mutating func counted(_ rows: Tally.Rows, of app: AppID) throws -> CountedApp {
        if let counted = known[rows] { return counted }
        var tally = try tallies.removeValue(forKey: app) ?? transaction.tally(of: app, now: now)
        let counted = CountedApp(rows, &tally)
        tallies[app] = tally
        known[rows] = counted
        return counted
    }

    /// Whether keys of an app that is to be retired may be elsewhere than on its device's disk, whatever that says.
    mutating func isDoubtful(_ app: AppID, on device: DeviceID) throws -> Bool {
        if let known = doubtful[app] { return known.contains(device) }
        let left = try transaction.leftKeys(of: app, retiredBy: transaction.retirements(of: app))
        let devices = Set(left.filter(\.isOfPresentDevice).map(\.device))
        doubtful[app] = devices
        return devices.contains(device)
    }
}

/// A status in `apps`, as the device has published it, and how it is counted.
struct AppRow: JSONWritable {
    let status: Status
    let counted: CountedApp
    let isDoubtful: Bool

    init(_ status: Status, _ rows: Tally.Rows, _ counts: inout AppCounts) throws {
        self.status = status
        counted = try counts.counted(rows, of: status.app)
        isDoubtful = try counted.retirement != nil && counts.isDoubtful(status.app, on: status.device)
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            status.writeMembers(to: &writer)
            writer.member("connection", counted.connection.rawValue)
            writer.member("counted") { writer in
                writer.object { writer in
                    for policy in Policy.allCases {
                        writer.member(named: policy.rawValue, counted.outcomes[policy.index])
                    }
                }
            }
            writer.member("retirement", ifPresent: counted.retirement)
            if isDoubtful { writer.member("doubtful", true) }
        }
    }
}

/// A document in `policies`.
struct PolicyRow: JSONWritable {
    let document: StoredDocument
    /// Whether it is the one that counts on the device that was asked for.
    let decides: Bool?

    func write(to writer: inout JSONWriter) {
        guard let place = DocumentPlace(document.address) else { return writer.null() }
        writer.object { writer in
            writer.member("app", place.app)
            writer.member("target", place.layer)
            writer.member("aspect", place.aspect)
            if let decides { writer.member("decides", decides) }
            writer.member("epoch", document.revision.epoch)
            writer.member("revision", document.revision.number)
            writer.member("change", document.change.number)
            writer.member("issuedAt", document.issuedAt)
            writer.member("by", document.by)
            writer.member("why", ifPresent: document.why)
            writer.member("value", ifPresent: document.value.map(JSONValue.init(stored:)))
        }
    }
}

extension HistoryEntry: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("revision", revision)
            writer.member("at", at)
            writer.member("by", by)
            writer.member("why", ifPresent: why)
            writer.member("app", app)
            writer.member("target", target)
            writer.member("aspect", aspect)
            writer.member("old", ifPresent: old.map(JSONValue.init(stored:)))
            writer.member("new", ifPresent: new.map(JSONValue.init(stored:)))
        }
    }
}

/// An event or a change of a log level in `events`: what its body says, and when it was stored.
struct EventRow: JSONWritable {
    private let event: ListedEvent

    init(_ event: ListedEvent) { self.event = event }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("device", event.device)
            writer.member("app", event.app)
            writer.member("kind", event.kind)
            writer.member("at", event.at)
            writer.member("storedAt", event.place.storedAt)
            writer.member("incarnation", event.place.incarnation)
            writer.member("boot", event.place.boot)
            writer.member("number", event.place.number)
            // What cannot be read is of a newer agent, and named so far as it is understood.
            switch event.kind {
            case .logLevel:
                let change = try? LogLevelChange(wire: event.body, device: event.device, app: event.app)
                writer.member("old", ifPresent: change?.old)
                writer.member("new", ifPresent: change?.new)
                writer.member("why", ifPresent: change?.why.rawValue)
                writer.member("until", ifPresent: change?.until)
            case .blocked, .ready, .wiped, .locked, .unlocked, .refused, .unknown:
                let told = try? AppEvent(wire: event.body, device: event.device, app: event.app)
                writer.member("action", ifPresent: told?.action?.rawValue)
                writer.member("target", ifPresent: told?.target)
                writer.member("message", ifPresent: told?.message)
            }
        }
    }
}

extension JSONValue {
    /// What the store keeps as JSON text.
    init(stored text: String) {
        self = (try? JSONValue(json: Array(text.utf8), limit: SignedDocument.maximumSize)) ?? .null
    }
}
