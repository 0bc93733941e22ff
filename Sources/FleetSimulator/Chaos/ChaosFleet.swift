import FleetHome
import FleetProtocol
import Foundation
import Glibc

/// A whole fleet of real processes in one folder, each way to the broker through a proxy.
///
/// The broker listens on an address of its own; where its clients look for it, a proxy answers.
final class ChaosFleet {
    let folder: String
    let home: FleetHome
    let devices: [DeviceID]
    let apps: [AppID]
    /// Who may be taken out of the fleet: the last one, if there are others.
    var guest: DeviceID? { devices.count > 1 ? devices.last : nil }
    /// Those for whom there are groups and documents of their own.
    var regulars: [DeviceID] { devices.filter { $0 != guest } }
    private(set) var parts: [ChaosPart] = []
    /// Every run of fleetctl that may not have ended.
    var questions: [Child] = [] {
        didSet { if questions.count > 50 { questions.removeAll { $0.ending != nil } } }
    }
    private(set) var links: [ChaosPlan.Link: Proxy] = [:]
    /// Copies of the broker's database, the oldest first.
    private var databases: [String] = []
    /// What the next start of the broker finds; nil for what the last one left.
    private var nextDatabase: Database?
    /// Whether the next start of the controller is told that its database was put back.
    private var isRestoring = false

    private enum Database {
        case empty
        case copy(of: String)
    }

    /// Whether this machine can limit the files of a process that runs.
    static var canFillDisks: Bool { (try? Child.path(of: "prlimit")) != nil }

    private static let brokerHost = "127.0.0.2"

    /// Makes folder, fleet and ways; nothing runs yet but the proxies. ``end(keepsFiles:)`` ends it, however far it came.
    init(folder: String, devices: Int, apps: Int) throws {
        self.folder = folder
        self.devices = (1...devices).map { DeviceID(unchecked: "d\($0)") }
        self.apps = (1...apps).map { AppID(unchecked: "chaos.a\($0)") }
        for name in ["log", "app", "fleetctl", "database"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder)/\(name)", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        home = try FleetHome.create(
            at: folder + "/home", fleet: FleetID(unchecked: "chaos"), port: try Loopback.freePort(),
            listen: Self.brokerHost, brokerUser: NSUserName(), guardLibrary: FleetHome.ownGuardLibrary)
    }

    /// Enrols the devices, and lays the ways.
    func prepare() async throws {
        try link(.controller, at: home.context.host)
        let floors = Floors(trust: try home.trust())
        let enrolments = devices.map { FleetHome.Enrolment(device: $0, folder: path(of: $0)) }
        try home.enroll(enrolments, floors: floors)
        for number in 1...devices.count {
            try readdress(number)
            try link(.agent(number), at: Self.host(of: number))
        }
        try makeParts()
    }

    private static func host(of device: Int) -> String { "127.0.1.\(device)" }

    /// Lets a device that has been enrolled look for the broker where its own proxy answers.
    func readdress(_ device: Int) throws {
        let file = URL(fileURLWithPath: path(of: devices[device - 1]) + "/agent.json")
        let text = try String(contentsOf: file, encoding: .utf8)
        let moved = text.replacing(
            "\"host\":\"\(home.context.host)\"", with: "\"host\":\"\(Self.host(of: device))\"")
        guard moved != text else { throw LoadError("\(file.path) names no broker at \(home.context.host)") }
        try Data(moved.utf8).write(to: file, options: .atomic)
        chmod(file.path, 0o600)
    }

    private func link(_ link: ChaosPlan.Link, at host: String) throws {
        links[link] = try Proxy(host: host, port: home.context.port, to: Self.brokerHost, home.context.port)
    }

    func path(of device: DeviceID) -> String { "\(folder)/\(device)" }
    func keyFile(of app: AppID, on device: DeviceID) -> String { "\(path(of: device))/state/keys/\(app).key" }
    func output(of app: AppID, on device: DeviceID) -> String { "\(folder)/app/\(device)-\(app).jsonl" }

    func data(of app: AppID, on device: DeviceID) -> String { "\(folder)/data-\(device)-\(app)" }
    /// A secure file of an app.
    func file(of app: AppID, on device: DeviceID) -> String { data(of: app, on: device) + "/takings" }

    // MARK: Processes

    private func makeParts() throws {
        let (mosquitto, controller) = (try Child.path(of: "mosquitto"), try Child.path(of: "fleet-controller"))
        let (agent, app) = (try Child.path(of: "fleet-agent"), try Child.path(of: "sample-app"))
        let limits = folder + "/log/prlimit.log"
        func log(_ name: String) -> Child.Streams { Child.Streams(output: "\(folder)/log/\(name).log") }
        parts.append(
            ChaosPart(.broker, limits: limits) { [unowned self] in
                try putDatabase()
                return try Child(mosquitto, ["-c", home.brokerConfigurationPath], log("broker"))
            })
        parts.append(
            ChaosPart(.controller, limits: limits) { [unowned self] in
                defer { isRestoring = false }
                let manner = isRestoring ? ["--restored"] : []
                return try Child(controller, ["run", "--home", home.path] + manner, log("controller"))
            })
        for (index, device) in devices.enumerated() {
            let configuration = path(of: device) + "/agent.json"
            parts.append(
                ChaosPart(.agent(index + 1), limits: limits) {
                    try Child(agent, ["run", "--config", configuration], log("\(device)"))
                })
            for (number, id) in apps.enumerated() {
                let arguments = [
                    "--socket", path(of: device) + "/agent.sock", "--app", id.text, "--data", data(of: id, on: device),
                ]
                let streams = Child.Streams(
                    output: output(of: id, on: device), errors: "\(folder)/log/\(device)-\(id).log", takesInput: true)
                parts.append(
                    ChaosPart(.app(index + 1, number + 1), limits: limits) {
                        try Child(app, arguments + Self.manner(of: number), streams)
                    })
            }
        }
    }

    /// How the apps of a device differ.
    private static func manner(of app: Int) -> [String] {
        switch app % 4 {
        case 1: ["--without", "print"]
        case 2: ["--answer", "error=config"]
        case 3: ["--ack-after", "300ms"]
        default: []
        }
    }

    /// What an app answers to a policy.
    static func answer(of app: Int, to policy: Policy) -> Outcome {
        switch (app % 4, policy) {
        case (1, .print): .unsupported
        case (2, .config): .error
        default: .applied
        }
    }

    func part(_ target: ChaosPlan.Target) -> ChaosPart? { parts.first { $0.target == target } }

    // MARK: The broker's database

    private var database: String { home.path + "/broker/data/mosquitto.db" }

    /// Has the broker write its database; ``keepDatabase()`` some time later copies it.
    func saveDatabase(at now: Int64) {
        guard let broker = part(.broker), broker.isSettled(at: now) else { return }
        broker.child?.signal(SIGUSR1)
    }

    func keepDatabase() {
        let copy = "\(folder)/database/\(databases.count).db"
        if (try? FileManager.default.copyItem(atPath: database, toPath: copy)) != nil { databases.append(copy) }
    }

    func restoreController() { isRestoring = true }

    func loseDatabase() { nextDatabase = .empty }

    /// The copy before the last `age`, if there are so many. False when there is none.
    func putBackDatabase(age: Int) -> Bool {
        guard !databases.isEmpty else { return false }
        nextDatabase = .copy(of: databases[max(0, databases.count - 1 - age)])
        return true
    }

    private func putDatabase() throws {
        guard let nextDatabase else { return }
        self.nextDatabase = nil
        try? FileManager.default.removeItem(atPath: database)
        if case .copy(let copy) = nextDatabase { try FileManager.default.copyItem(atPath: copy, toPath: database) }
    }

    // MARK: The end

    /// Ends everything that was started.
    func end(keepsFiles: Bool) async {
        for question in questions { await question.end() }
        for part in parts.reversed() { await part.leave() }
        for link in links.values { link.end() }
        if !keepsFiles { try? FileManager.default.removeItem(atPath: folder) }
    }
}
