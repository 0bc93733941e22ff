import ArgumentParser
import FleetHome
import FleetProtocol

struct Get: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists devices, apps, policies, the history of changes, or what devices have told of.",
        subcommands: [GetDevices.self, GetApps.self, GetPolicies.self, GetHistory.self, GetEvents.self])
}

/// One app.
struct AppOptions: ParsableArguments {
    @Option(help: "One app only.", transform: { try AppID(checking: $0) })
    var app: AppID?
}

/// One device.
struct DeviceOptions: ParsableArguments {
    @Option(help: "One device only.", transform: { try DeviceID(checking: $0) })
    var device: DeviceID?
}

/// One target.
struct TargetOptions: ParsableArguments {
    @Option(help: "One target only: all, group/NAME or device/ID.", transform: { try Layer(parsing: $0) })
    var target: Layer?
}

/// How much of a list that begins with the newest.
struct LimitOptions: ParsableArguments {
    @Option(help: ArgumentHelp("At most so many, the newest.", valueName: "number"))
    var limit: Int?

    func validate() throws {
        if let limit, !(1...1_000_000_000).contains(limit) {
            throw ValidationError("--limit \(limit): expected 1 to 1000000000")
        }
    }
}

extension FleetOptions {
    /// Asks for a list. When there is nothing on it, whoever asked for something by name is told so.
    fileprivate func list(
        _ verb: Verb, _ request: ListRequest, atMost limit: Int = .max, orNote what: String
    ) async throws -> [JSONValue] {
        let found = try await reach { try await $0.list(verb, request, atMost: limit) }
        let names = [
            request.app.map { "app \($0)" }, request.device.map { "device \($0)" },
            request.layer.map { "target \($0)" }, request.policy.map { "policy \($0.rawValue)" },
            request.outcome.map { "outcome \($0.rawValue)" }, request.retirement.map { "retirement \($0.rawValue)" },
            request.kind.map { "kind \($0.rawValue)" },
        ].compactMap { $0 }
        let since = request.since.map { " since \($0.tableText)" } ?? ""
        if found.isEmpty, !(names.isEmpty && since.isEmpty) {
            let whose = names.isEmpty ? "" : " of \(names.joined(separator: ", "))"
            Terminal.note("note: \(what)\(whose)\(since)")
        }
        return found
    }

    /// Asks for the first rows of a list that begins with the newest, or for all, and says when there are more.
    fileprivate func newest(
        _ limit: Int?, _ verb: Verb, _ request: ListRequest, orNote what: String
    ) async throws -> [JSONValue] {
        guard let limit else { return try await list(verb, request, orNote: what) }
        let found = try await list(verb, request, atMost: limit + 1, orNote: what)
        if found.count > limit { Terminal.note("note: the newest \(limit) are shown; --limit shows more") }
        return Array(found.prefix(limit))
    }
}

struct GetDevices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists the devices, with their presence and groups.")

    @OptionGroup var device: DeviceOptions
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let request = ListRequest(device: device.device)
        try output.show(Self.report(try await fleet.list(.devices, request, orNote: "nothing is known")))
    }

    static func report(_ devices: [JSONValue]) -> Report {
        var table = Table([
            .init("DEVICE"), .init("STATE"), .init("SINCE"), .init("AGENT"), .init("STARTED"),
            .init("INCARNATION", isNumber: true), .init("APPS", isNumber: true), .init("GROUPS"),
        ])
        var warnings: [String] = []
        for device in devices {
            let name = Cell.text(device["device"])
            for warning in device["warnings"]?.arrayValue ?? [] {
                warnings.append("warning: \(name): " + TerminalText.line(warning.stringValue ?? "", limit: 200))
            }
            table.add([
                name, Cell.text(device["state"]), Cell.time(device["since"]),
                Cell.text(device["agent"], limit: 24), Cell.started(device["boot"]),
                Cell.count(device["incarnation"]), Cell.count(device["apps"]),
                TerminalText.line(
                    device["groups"]?.arrayValue?.compactMap(\.stringValue).joined(separator: ",") ?? "", limit: 40),
            ])
        }
        return Report(.array(devices), table: table.lines + (warnings.isEmpty ? [] : [""] + warnings))
    }
}

struct GetApps: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apps",
        abstract: "Lists the apps of the devices, and how far each is with what is wanted of it now.",
        discussion: """
            -o json and -o yaml give the whole status as the device published it, and beside it `connection`, `counted` \
            (each policy's outcome, held against what is wanted now) and, of an app that is to be retired, `retirement` and, where keys may be on an earlier \
            disk or a copy of the device's, `doubtful`.

            EXAMPLES
              fleetctl get apps --device till-1
              fleetctl get apps --app com.example.mail --policy print --outcome error
              fleetctl get apps --retirement outstanding    may still have keys
            """)

    @OptionGroup var app: AppOptions
    @OptionGroup var device: DeviceOptions
    @Option(help: ArgumentHelp("Only those counted so, as in `fleetctl status`.", valueName: "outcome"))
    var outcome: Outcome?
    @Option(help: ArgumentHelp("With --outcome: of this policy; of any otherwise.", valueName: "policy"))
    var policy: Policy?
    @Option(
        help: ArgumentHelp(
            "Only those to be retired: `outstanding` where the keys may still be there, `confirmed` where they are"
                + " destroyed.", valueName: "retirement"))
    var retirement: Retirement?
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if policy != nil, outcome == nil { throw ValidationError("--policy selects nothing without --outcome") }
    }

    func run() async throws {
        let request = ListRequest(
            app: app.app, device: device.device, outcome: outcome, policy: policy, retirement: retirement)
        let apps = try await fleet.list(.apps, request, orNote: "nothing was reported")
        if outcome != nil || retirement != nil, apps.contains(where: { $0["counted"] == nil }) {
            throw CommandError(
                .refused, "the controller is of an earlier version, which lists all apps alike: leave the options out")
        }
        try output.show(Self.report(Self.sorted(apps)))
    }

    /// By device and app, whatever the order in which they were first heard of.
    static func sorted(_ apps: [JSONValue]) -> [JSONValue] {
        func key(_ app: JSONValue) -> (String, String) {
            (app["device"]?.stringValue ?? "", app["app"]?.stringValue ?? "")
        }
        return apps.map { (key($0), $0) }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    static func report(_ apps: [JSONValue]) -> Report {
        var table = Table([
            .init("DEVICE"), .init("APP"), .init("STATE"), .init("AUTH"), .init("KEYS"), .init("RUNS"),
            .init("REPORT", isNumber: true), .init("APPLIED", isNumber: true), .init("OTHERWISE"),
        ])
        for app in apps {
            var applied = 0
            var otherwise: [String] = []
            for policy in app["policies"]?.memberValues ?? [] {
                let attempt = policy.value["attempt"]
                let reported = attempt?["outcome"]?.stringValue ?? "?"
                let outcome = app["counted"]?[policy.name]?.stringValue ?? reported
                if outcome == Outcome.applied.rawValue {
                    applied += 1
                    // In force, and somebody at the device has to do something all the same.
                    let message = attempt?["message"]?.stringValue
                    if policy.name == Policy.secureServices.rawValue, let message { otherwise.append(message) }
                } else {
                    // What was said of another revision says nothing of the one that is wanted.
                    let message = outcome == reported ? attempt?["message"]?.stringValue.map { " (\($0))" } : nil
                    otherwise.append("\(policy.name) \(outcome)\(message ?? "")")
                }
            }
            if app["doubtful"] == true { otherwise.insert("keys perhaps elsewhere (get devices)", at: 0) }
            table.add([
                Cell.text(app["device"]), Cell.text(app["app"]), Cell.text(app["connection"]),
                Cell.text(app["auth"]?["state"]), keys(of: app),
                app["running"] == true ? "yes" : "no", Cell.text(app["seq"]), "\(applied)",
                TerminalText.line(otherwise.joined(separator: ", "), limit: 80),
            ])
        }
        return Report(.array(apps), table: table.lines)
    }

    /// An authorized app whose keys are there, and out of its reach, is locked: by its policy, or until the passcode is entered.
    private static func keys(of app: JSONValue) -> String {
        let isLocked =
            app["keys"] == "present" && app["secureServices"] == "unavailable"
            && app["auth"]?["state"] == "authorized"
        return isLocked ? "locked" : Cell.text(app["keys"])
    }
}

struct GetPolicies: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policies", abstract: "Lists what is wanted: every policy document in force.",
        discussion: """
            With --device: those that speak to it, and which of them decides.

            EXAMPLES
              fleetctl get policies --app com.example.mail --target all
              fleetctl get policies --app com.example.mail --device till-1
            """)

    @OptionGroup var app: AppOptions
    @OptionGroup var device: DeviceOptions
    @OptionGroup var target: TargetOptions
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let request = ListRequest(app: app.app, device: device.device, layer: target.target)
        let policies = try await fleet.list(.policies, request, orNote: "nothing is wanted")
        // What is for all would be for any that there were.
        if let device = device.device, !policies.isEmpty {
            _ = try await fleet.list(.devices, ListRequest(device: device), orNote: "nothing is known")
        }
        try output.show(Self.report(policies))
    }

    static func report(_ policies: [JSONValue]) -> Report {
        // Asked of a device alone; a controller of before does not say.
        let isOfDevice = policies.contains { $0["decides"] != nil }
        var table = Table(
            [.init("APP"), .init("TARGET"), .init("ASPECT")] + (isOfDevice ? [.init("DECIDES")] : []) + [
                .init("REVISION", isNumber: true), .init("ISSUED"), .init("BY"), .init("VALUE"),
            ])
        for policy in policies {
            let decides = policy["decides"] == true ? "yes" : "no"
            table.add(
                [Cell.text(policy["app"]), Cell.text(policy["target"]), Cell.text(policy["aspect"])]
                    + (isOfDevice ? [decides] : []) + [
                        Cell.text(policy["revision"]), Cell.time(policy["issuedAt"]),
                        Cell.text(policy["by"], limit: 24), Cell.text(policy["value"]),
                    ])
        }
        return Report(.array(policies), table: table.lines)
    }
}

struct GetHistory: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Lists who changed what, when and why; the newest first.",
        discussion: """
            A device that was removed has a row of the aspect `removal`. Its old value, whole in -o json and -o yaml, is what it was \
            the last to say of each app: whether its keys were there, and when the controller stored that they were destroyed.

            EXAMPLES
              fleetctl get history --app com.example.mail --target device/till-1
              fleetctl get history --limit 20
              fleetctl get history --target device/till-1 -o json | jq '.[].old'
            """)

    @OptionGroup var app: AppOptions
    @OptionGroup var target: TargetOptions
    @OptionGroup var newest: LimitOptions
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let request = ListRequest(app: app.app, layer: target.target)
        try output.show(
            Self.report(try await fleet.newest(newest.limit, .history, request, orNote: "nothing was changed")))
    }

    static func report(_ changes: [JSONValue]) -> Report {
        var table = Table([
            .init("REVISION", isNumber: true), .init("AT"), .init("BY"), .init("APP"), .init("TARGET"), .init("ASPECT"),
            .init("OLD"), .init("NEW"), .init("WHY"),
        ])
        for change in changes {
            table.add([
                Cell.text(change["revision"]), Cell.time(change["at"]), Cell.text(change["by"], limit: 24),
                Cell.text(change["app"]), Cell.text(change["target"]), Cell.text(change["aspect"]),
                change["aspect"] == "removal" ? lastWords(change["old"]) : Cell.text(change["old"], limit: 32),
                Cell.text(change["new"], limit: 32),
                Cell.text(change["why"], limit: 40),
            ])
        }
        return Report(.array(changes), table: table.lines)
    }

    /// `3 apps, keys of 1`: how many a removed device had, and of how many it did not say that their keys are gone.
    private static func lastWords(_ old: JSONValue?) -> String {
        let apps = old?["apps"]?.arrayValue ?? []
        let kept = apps.filter { $0["keys"]?.stringValue != Status.Keys.destroyed.rawValue }
            .compactMap { $0["app"]?.stringValue }
        let left = old?["leftKeys"]?.arrayValue?.compactMap(\.stringValue) ?? []
        let holding = Set(kept + left).count
        let copied = old?["copied"] == true ? ", copied" : ""
        return "\(apps.count) app\(apps.count == 1 ? "" : "s"), " + (holding == 0 ? "no keys" : "keys of \(holding)")
            + copied
    }
}

struct GetEvents: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Lists what devices have told of: blocked attempts, destroyed keys, log levels; the newest first.",
        discussion: """
            Kinds: blocked (the app tried what its policy blocks), ready (it has been told its properties, at a launch), \
            wiped (its keys were destroyed), locked and unlocked (its secure services, by a policy or too many wrong \
            passcodes), refused (another process called itself so), logLevel (its log level changed, or a code was \
            refused), unknown (of a newer agent). AT is the device's clock, STORED the controller's: a device that was \
            offline tells of it later. An event is kept until its device is removed from the fleet; what it was the last to say \
            stands in the history then (`get history --target device/ID`). Without --limit the \
            newest 100 are shown.

            EXAMPLES
              fleetctl get events --kind wiped --since 7d
              fleetctl get events --device till-1 --app com.example.mail --limit 1000
              fleetctl get events --kind blocked -o json | jq -r '.[].target'
            """)

    /// How many are shown where nothing else is asked for.
    private static let limit = 100

    /// A moment, or how long ago it is.
    struct Moment {
        let time: Timestamp
        init(checking text: String) throws {
            if let time = Timestamp(text) {
                self.time = time
            } else if let seconds = DurationText.seconds(text), seconds <= 100 * 365 * 86_400 {
                time = Timestamp.now.advanced(bySeconds: -seconds)
            } else {
                throw ValidationError(
                    "\(DurationText.expectation), or a time in UTC such as 2026-11-21T07:24:00.000Z")
            }
        }
    }

    @OptionGroup var app: AppOptions
    @OptionGroup var device: DeviceOptions
    @Option(help: ArgumentHelp("One kind only.", valueName: "kind"))
    var kind: EventKind?
    @Option(
        help: ArgumentHelp(
            "Only what was stored since then: 2h, 7d, or 2026-11-21T07:24:00.000Z.", valueName: "time"),
        transform: { try Moment(checking: $0) })
    var since: Moment?
    @OptionGroup var newest: LimitOptions
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let request = ListRequest(app: app.app, device: device.device, kind: kind, since: since?.time)
        let limit = newest.limit ?? Self.limit
        try output.show(
            Self.report(try await fleet.newest(limit, .events, request, orNote: "nothing was told")))
    }

    static func report(_ events: [JSONValue]) -> Report {
        var table = Table([
            .init("STORED"), .init("AT"), .init("DEVICE"), .init("APP"), .init("KIND"), .init("WHAT"),
        ])
        for event in events {
            table.add([
                Cell.time(event["storedAt"]), Cell.time(event["at"]), Cell.text(event["device"]),
                Cell.text(event["app"]), Cell.text(event["kind"]), TerminalText.line(what(event), limit: 100),
            ])
        }
        return Report(.array(events), table: table.lines)
    }

    /// What it tells beside its kind, in the words of the live feed.
    private static func what(_ event: JSONValue) -> String {
        func text(_ name: String) -> String? { event[name]?.stringValue }
        if let old = text("old"), let new = text("new") {
            let until = text("until").flatMap { Timestamp($0) }.map { " until \($0.tableText)" }
            return "\(old) → \(new) (\(text("why") ?? ""))\(until ?? "")"
        }
        return [text("action"), text("target"), text("message")].compactMap(\.self).joined(separator: " ")
    }
}

extension EventKind: ExpressibleByArgument {}
extension Outcome: ExpressibleByArgument {}
extension Policy: ExpressibleByArgument {}
extension Retirement: ExpressibleByArgument {}
