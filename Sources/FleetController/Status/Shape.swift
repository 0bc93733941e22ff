import FleetProtocol

/// What a status says about the ten policies of an app, without the times and messages, and whether its keys are there: what
/// is counted.
///
/// Most device-apps of a fleet share a few shapes, so a status is stored as one row that names its shape.
struct Shape: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        /// The document that decides, or nil for the default.
        let source: Address?
        let received: Int64
        let applied: Int64?
        let attempted: Int64
        let outcome: Outcome
    }

    /// Whether an app can read its data; one that cannot may still have to say that it has erased what is its own.
    enum Keys: Hashable, Sendable {
        case present
        case destroyed(isRunning: Bool)

        init(_ status: Status) {
            self = status.keys == .present ? .present : .destroyed(isRunning: status.isRunning)
        }
    }

    /// One for each policy, by its index.
    let entries: [Entry]
    let keys: Keys

    subscript(policy: Policy) -> Entry { entries[policy.index] }

    // MARK: How it is stored: a line for each policy, `source received applied attempted outcome`, and one of keys that are gone

    private static let destroyed = "destroyed"
    private static let destroyedRunning = "destroyed running"

    /// The text by which equal shapes of one app are found. A source that stands where one expects it is named by its
    /// layer alone.
    static func key(of status: Status) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(256)
        for policy in Policy.allCases {
            let report = status.policies[policy.index]
            switch report.source {
            case nil: text.append(UInt8(ascii: "-"))
            case .desired(let layer, let app, let aspect)? where app == status.app && aspect == policy.aspect:
                append(layer, to: &text)
            case let address?: text.append(contentsOf: address.path.utf8)
            }
            append(report.received, to: &text)
            if let applied = report.applied {
                append(applied, to: &text)
            } else {
                text.append(contentsOf: " -".utf8)
            }
            append(report.attempt.revision, to: &text)
            text.append(UInt8(ascii: " "))
            text.append(contentsOf: report.attempt.outcome.rawValue.utf8)
            text.append(UInt8(ascii: "\n"))
        }
        if case .destroyed(let isRunning) = Keys(status) {
            text.append(contentsOf: (isRunning ? destroyedRunning : destroyed).utf8)
            text.append(UInt8(ascii: "\n"))
        }
        return text
    }

    private static func append(_ number: Int64, to text: inout [UInt8]) {
        text.append(UInt8(ascii: " "))
        // Twenty numbers for each status: without a text for each.
        if number < 0 { text.append(UInt8(ascii: "-")) }
        let start = text.count
        var rest = number.magnitude
        repeat {
            text.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        text[start...].reverse()
    }

    private static func append(_ layer: Layer, to text: inout [UInt8]) {
        switch layer {
        case .all: text.append(contentsOf: "all".utf8)
        case .group(let group):
            text.append(contentsOf: "group/".utf8)
            text.append(contentsOf: group.text.utf8)
        case .device(let device):
            text.append(contentsOf: "device/".utf8)
            text.append(contentsOf: device.text.utf8)
        }
    }

    /// Reads what ``key(of:)`` has written about `app`.
    init?(key: [UInt8], app: AppID) {
        let lines = key.split(separator: UInt8(ascii: "\n"))
        let count = Policy.allCases.count
        switch lines.dropFirst(count).map({ String(decoding: $0, as: UTF8.self) }) {
        case []: keys = .present
        case [Self.destroyed]: keys = .destroyed(isRunning: false)
        case [Self.destroyedRunning]: keys = .destroyed(isRunning: true)
        default: return nil
        }
        guard lines.count >= count else { return nil }
        var entries: [Entry] = []
        entries.reserveCapacity(lines.count)
        for policy in Policy.allCases {
            // The policies of one aspect mostly say the same.
            if let last = entries.last, lines[policy.index] == lines[policy.index - 1],
                policy.aspect == Policy.allCases[policy.index - 1].aspect
            {
                entries.append(last)
            } else {
                guard let entry = Entry(line: lines[policy.index], app, policy) else { return nil }
                entries.append(entry)
            }
        }
        self.entries = entries
    }
}

extension Shape.Entry {
    fileprivate init?(line: ArraySlice<UInt8>, _ app: AppID, _ policy: Policy) {
        let words = line.split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 5, let received = Int64(words[1]), let attempted = Int64(words[3]),
            let outcome = Outcome(rawValue: words[4])
        else { return nil }
        let source = Self.source(words[0], app, policy)
        guard source != nil || words[0] == "-" else { return nil }
        self.init(
            source: source, received: received, applied: Int64(words[2]), attempted: attempted, outcome: outcome)
    }

    private static func source(_ word: String, _ app: AppID, _ policy: Policy) -> Address? {
        if word.hasPrefix("desired/") { return Address(path: word) }
        guard let aspect = policy.aspect, let layer = try? Layer(parsing: word) else { return nil }
        return .desired(layer, app, aspect)
    }
}
