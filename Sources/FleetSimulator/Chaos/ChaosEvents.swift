import FleetController
import FleetProtocol
import FleetWorld

/// The events and log-level changes that the controller has stored, next to what the apps printed.
struct ChaosEvents {
    /// What a URL begins with that an app tries; a number follows, each once.
    static let url = "https://chaos.example/"

    private struct Boot: Hashable {
        let device: DeviceID
        let incarnation: Int64
        let boot: Int64
    }

    private var numbers: [Boot: Set<Int64>] = [:]
    /// How often a URL is named.
    private var urls: [String: Int] = [:]
    /// The levels of each app, in the order of the changes.
    private var levels: [String: [(order: (Int64, Int64, Int64), level: String)]] = [:]

    init(_ stored: [FleetStore.StoredEvent: [UInt8]]) throws {
        for (key, body) in stored {
            let value = try JSONValue(json: body, limit: body.count)
            numbers[Boot(device: key.device, incarnation: key.incarnation, boot: key.boot), default: []].insert(
                key.number)
            if let url = value["target"]?.stringValue, url.hasPrefix(Self.url) { urls[url, default: 0] += 1 }
            if let level = value["new"]?.stringValue {
                levels["\(value["app"]?.stringValue ?? "") on \(key.device)", default: []]
                    .append(((key.incarnation, key.boot, key.number), level))
            }
        }
        for name in levels.keys { levels[name]?.sort { $0.order < $1.order } }
    }

    /// How long an agent needs at most to hear its apps and store what they say.
    private static let margin: Int64 = 5_000

    /// An attempt is said until an agent has stored it: only with its app it can be lost.
    private func isCertain(_ at: Int64, _ transcript: ChaosTranscript, _ chaos: Chaos) -> Bool {
        let fleet = chaos.fleet
        guard
            let agent = fleet.parts.first(where: { $0.target.isAgent(of: transcript.device) }),
            let app = fleet.parts.first(where: { $0.target.isApp(transcript.app, on: transcript.device) }),
            let told = agent.quiet(since: at, for: Self.margin)
        else { return false }
        return !app.wounds.contains { (at - Self.margin...told).contains($0.at) }
    }

    func check(_ chaos: Chaos, statuses: [JSONValue]) {
        // With a device that is taken out its events go.
        for (boot, numbers) in numbers.sorted(by: { $0.key.boot < $1.key.boot }) where boot.device != chaos.fleet.guest
        {
            if let last = numbers.max(), Int64(numbers.count) != last {
                chaos.fail(
                    ChaosFinding(
                        .kept, "\(boot.device): \(numbers.count) of \(last) events of boot \(boot.boot) are stored",
                        device: boot.device.text))
            }
        }
        for status in statuses { checkCount(status, chaos) }
        for (url, count) in urls where count > 1 {
            chaos.fail(ChaosFinding(.once, "the attempt to open \(url) is stored \(count) times"))
        }
        for transcript in chaos.transcripts where transcript.device != chaos.fleet.guest { check(transcript, chaos) }
    }

    /// The agent says how many events it has numbered in its present boot.
    private func checkCount(_ status: JSONValue, _ chaos: Chaos) {
        guard let device = status["device"]?.stringValue.flatMap({ DeviceID($0) }),
            let count = status["events"]?.integerValue
        else { return }
        let boot = Boot(
            device: device, incarnation: status["incarnation"]?.integerValue ?? 0,
            boot: status["boot"]?.integerValue ?? 0)
        let stored = numbers[boot]?.max() ?? 0
        if stored < count {
            chaos.fail(
                ChaosFinding(
                    .kept, "\(device) has numbered \(count) events in boot \(boot.boot), and \(stored) are stored",
                    device: device.text))
        }
    }

    private func check(_ transcript: ChaosTranscript, _ chaos: Chaos) {
        let name = "\(transcript.app) on \(transcript.device)"
        for (at, url) in transcript.blocked where urls[url] == nil && isCertain(at, transcript, chaos) {
            chaos.fail(
                ChaosFinding(
                    .kept, "\(name): the blocked attempt to open \(url) at \(at) ms is not stored",
                    device: transcript.device.text))
        }
        var stored = (levels[name] ?? []).map(\.level)[...]
        var before = "status"
        for level in transcript.levels where level != before {
            guard let index = stored.firstIndex(of: level) else {
                chaos.fail(
                    ChaosFinding(
                        .kept, "\(name): its log level went from \(before) to \(level), and no such change is stored",
                        device: transcript.device.text))
                break
            }
            stored = stored[(index + 1)...]
            before = level
        }
    }
}

extension ChaosPlan.Target {
    fileprivate func isAgent(of id: DeviceID) -> Bool {
        if case .agent(let device) = self { "d\(device)" == id.text } else { false }
    }

    fileprivate func isApp(_ id: AppID, on name: DeviceID) -> Bool {
        if case .app(let device, let app) = self {
            "d\(device)" == name.text && "chaos.a\(app)" == id.text
        } else {
            false
        }
    }
}
