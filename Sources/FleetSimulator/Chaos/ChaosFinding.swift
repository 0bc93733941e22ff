import FleetProtocol
import FleetWorld

/// A promise of the design that real processes have broken.
struct ChaosFinding: Hashable, Sendable {
    let law: Law
    let what: String
    /// The device, if it is about one.
    var device: String?

    init(_ law: Law, _ what: String, device: String? = nil) {
        self.law = law
        self.what = what
        self.device = device
    }
}

/// What chaos had to say.
struct ChaosReport: Sendable {
    let minutes: Double
    let seed: UInt64
    var faults: [String: Int] = [:]
    var changes = 0
    var accepted = 0
    var failures: [ChaosFinding] = []
    /// What happened last before and around the failures.
    var story: [String] = []
    /// Where everything is that was written, if it was kept.
    var logs: String?

    var value: JSONValue {
        let counts = faults.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .integer(Int64($0.value))) }
        return .object([
            "minutes": .double(minutes), "seed": .integer(Int64(seed)), "faults": .object(counts),
            "changes": .integer(Int64(changes)), "accepted": .integer(Int64(accepted)),
            "failures": .array(
                failures.map {
                    .object([
                        "law": .string($0.law.rawValue), "what": .string($0.what),
                        "device": $0.device.map(JSONValue.string),
                    ])
                }), "logs": logs.map(JSONValue.string),
        ])
    }

    var line: String {
        "chaos: \(minutes) minutes, seed \(seed): \(faults.values.reduce(0, +)) faults, \(changes) changes"
            + " (\(accepted) accepted), \(failures.count) failures"
    }
}
