import FleetProtocol
import FleetWorld

/// Somebody who changes policy without end. What is asked is decided by the seed; groups have one operator each, so that
/// the order of their changes is known.
struct ChaosOperator {
    private var random: SplitMix64
    private let group: GroupID
    private let devices: [DeviceID]
    private let apps: [AppID]
    private let groups: [GroupID]
    private var applied: [[ChaosChange.Document]] = []

    init(seed: UInt64, group: GroupID, devices: [DeviceID], apps: [AppID], groups: [GroupID]) {
        random = SplitMix64(seed: seed)
        self.group = group
        self.devices = devices
        self.apps = apps
        self.groups = groups
    }

    /// How long to think before the next change, in milliseconds.
    mutating func pause() -> Int64 { random.milliseconds(50...900) }

    mutating func change(_ number: Int) -> ChaosChange {
        let kind: ChaosChange.Kind
        switch random.below(100) {
        case 0..<55: kind = .apply(documents(number), isAgain: false)
        case 55..<65 where !applied.isEmpty:
            kind = .apply(applied[random.below(applied.count)], isAgain: true)
        case 65..<80: kind = .delete(one(of: apps), layer(), random.chance(60) ? one(of: Aspect.allCases) : nil)
        case 80..<85: kind = .groupDelete(group)
        default:
            let members = devices.filter { _ in random.chance(60) }
            kind = .group(group, ChaosGroup(priority: Int64(random.below(4)), devices: members))
        }
        if case .apply(let documents, false) = kind { applied = (applied + [documents]).suffix(12) }
        return ChaosChange(number: number, kind: kind)
    }

    private mutating func one<Value>(of values: [Value]) -> Value { values[random.below(values.count)] }

    private mutating func layer() -> Layer {
        switch random.below(3) {
        case 0: .all
        case 1: .group(one(of: groups))
        default: .device(one(of: devices))
        }
    }

    private mutating func documents(_ number: Int) -> [ChaosChange.Document] {
        var keys: [ChaosChange.Key] = []
        for _ in 0...random.below(2) {
            let (app, layer) = (one(of: apps), layer())
            for aspect in Aspect.allCases where random.chance(40) {
                let key = ChaosChange.Key(app: app, layer: layer, aspect: aspect)
                if !keys.contains(key) { keys.append(key) }
            }
        }
        if keys.isEmpty { keys = [ChaosChange.Key(app: one(of: apps), layer: layer(), aspect: .config)] }
        return keys.enumerated().map { index, key in
            let tag = "c\(number).\(index)"
            return ChaosChange.Document(key: key, tag: tag, value: value(of: key.aspect, tag))
        }
    }

    private mutating func value(of aspect: Aspect, _ tag: String) -> JSONValue {
        switch aspect {
        case .auth:
            let state = random.below(100)
            return Self.auth(state < 60 ? .authorized : state < 82 ? .unauthorized : .retired, tag)
        case .config:
            return .object(["tag": .string(tag), "size": .string(String(repeating: "x", count: random.below(400)))])
        case .dlp:
            return .object([
                "openIn": opening(tag), "openFrom": opening(tag),
                "pasteboard": .name(one(of: PasteboardPolicy.allCases)),
                "print": .name(one(of: PrintPolicy.allCases)),
                "dragAndDrop": .name(one(of: DragAndDropPolicy.allCases)),
            ])
        case .secureServices:
            return .object([
                "locked": .bool(random.chance(20)), "passcode": .object(["required": .bool(random.chance(50))]),
                "autoLock": .string("\(60 + random.below(600))s"),
            ])
        case .logLevel:
            let level = JSONValue.name(one(of: LogLevel.allCases))
            return random.chance(30) ? .object(["level": level, "for": "2s"]) : .object(["level": level])
        }
    }

    static func auth(_ state: AuthState, _ tag: String) -> JSONValue {
        .object(["state": .name(state), "message": .string(tag)])
    }

    private mutating func opening(_ tag: String) -> JSONValue {
        switch random.below(5) {
        case 0: .object(["policy": "authorized"])
        case 1: .object(["policy": "unauthorized"])
        case 2: .object(["policy": "appConnectApps"])
        default: .object(["policy": "whitelist", "apps": .array([.string(tag), .string(apps[0].text)])])
        }
    }
}

extension JSONValue {
    fileprivate static func name(_ value: some WireNamed) -> JSONValue { .string(value.description) }
}
