import FleetProtocol

/// What the clients of a floor subscribe to, and what passes between them and their driver.
struct FloorTraffic: Sendable {
    enum Kind: String, Sendable, CaseIterable {
        /// As the reference floor of other projects: three filters in one packet, 300 bytes down, 200 bytes up, not
        /// retained.
        case bare
        /// As many filters as a device of ours has, in two stages with their markers, and every message of our size and
        /// our length of topic; what we retain is retained.
        case equalBytes
    }

    let kind: Kind
    /// On each device.
    let apps: Int
    let requestSize: Int
    let replySize: Int
    let presenceSize: Int
    let helloSize: Int
    let markerSize: Int
    let trustSize: Int
    /// What the topics begin with, with the closing slash.
    let prefix: String
    /// At the head of each request and reply: since when, and which.
    static let headSize = 16

    init(_ kind: Kind, apps: Int) throws {
        self.kind = kind
        self.apps = apps
        let samples = try WireSamples(apps: apps)
        requestSize = kind == .bare ? 300 : samples.signed.wire.count
        replySize = kind == .bare ? 200 : samples.status.wire.count
        presenceSize = samples.presence.json.count
        helloSize = samples.hello.wire.count
        markerSize = samples.marker.json.count
        trustSize = samples.trust.wire.count
        prefix = kind == .bare ? "fleet/v1/" : Address.prefix(of: WireSamples.fleet)
    }

    private func topic(_ address: Address) -> String { address.topic(in: WireSamples.fleet) }

    func name(of index: Int) -> String {
        kind == .bare ? "d" + LoadPlan.deviceID(index + 1).text.dropFirst(4) : LoadPlan.deviceID(index + 1).text
    }

    var requestToAll: String {
        kind == .bare ? "fleet/v1/policy/all/app3/settings" : topic(.desired(.all, LoadPlan.appID(1), .config))
    }

    func request(to index: Int) -> String {
        kind == .bare
            ? "fleet/v1/policy/device/\(name(of: index))/app3/settings"
            : topic(.desired(.device(LoadPlan.deviceID(index + 1)), LoadPlan.appID(1), .config))
    }

    func reply(of index: Int, app: Int) -> String {
        kind == .bare
            ? "fleet/v1/reply/\(name(of: index))/app3/ack"
            : topic(.reply(LoadPlan.deviceID(index + 1), LoadPlan.appID(app), .status))
    }

    func presence(of index: Int) -> String {
        kind == .bare
            ? "fleet/v1/presence/\(name(of: index))" : topic(.presence(.device(LoadPlan.deviceID(index + 1))))
    }

    func hello(to index: Int) -> String { topic(.hello(LoadPlan.deviceID(index + 1))) }
    func barrier(of index: Int) -> String { topic(.barrier(.device(LoadPlan.deviceID(index + 1)))) }

    /// The filters of the first packet, and of the second.
    func filters(of index: Int) -> [[String]] {
        guard kind == .equalBytes else {
            return [
                [
                    "fleet/v1/policy/all/+/+", "fleet/v1/policy/group/g\(index % 100)/+/+",
                    "fleet/v1/policy/device/\(name(of: index))/+/+",
                ]
            ]
        }
        let device = LoadPlan.deviceID(index + 1)
        let control = [
            .trust, .membership(device), .presence(.device(device)), .heartbeat, .hello(device), .received(device),
            .barrier(.device(device)),
        ].map { topic($0 as Address) }
        let documents = (1...apps).flatMap { app in
            [TopicFilter.aspects(.all, LoadPlan.appID(app)), .aspects(.device(device), LoadPlan.appID(app))]
                .map { $0.text(in: WireSamples.fleet) }
        }
        return [control, documents]
    }

    var collected: [String] { kind == .bare ? ["fleet/v1/reply/#"] : [prefix + "reply/#", prefix + "presence/#"] }
}
