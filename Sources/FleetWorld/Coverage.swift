package import FleetProtocol

/// How often each transition of the parts was visited: a law says nothing about what never happens.
package final class Coverage {
    struct Transition: Hashable, Comparable, CustomStringConvertible {
        let part: String
        let what: String
        /// Where the part stood.
        let place: String

        init(_ part: String, _ what: String, _ place: String) {
            self.part = part
            self.what = what
            self.place = place
        }

        var description: String { "\(part): \(what)\(place.isEmpty ? "" : " · \(place)")" }

        static func < (left: Self, right: Self) -> Bool {
            (left.part, left.what, left.place) < (right.part, right.what, right.place)
        }
    }

    /// How far a device's connection has come.
    enum Phase: String, CaseIterable {
        case away
        case beforeFirst = "before the first barrier"
        case fetching
        case certain
    }

    struct Visits {
        var times = 0
        /// In how many schedules it was visited: in one that does, often many times.
        var schedules = 1

        static func + (left: Self, right: Self) -> Self {
            Self(times: left.times + right.times, schedules: left.schedules + right.schedules)
        }
    }

    private(set) var counts: [Transition: Visits] = [:]

    package init() {}

    /// Of the schedule that this coverage is of.
    func count(_ part: String, _ what: String, _ place: String) {
        counts[Transition(part, what, place), default: Visits()].times += 1
    }

    /// Of other schedules.
    func add(_ others: [Transition: Visits]) { counts.merge(others, uniquingKeysWith: +) }

    /// What should have been reachable, and was not visited.
    package var unvisited: [String] { Self.expected.filter { counts[$0] == nil }.map(\.description) }

    /// Of these, what that many schedules do not miss by chance.
    package func missed(by schedules: Int) -> [String] {
        let isLong = schedules >= 100_000
        return Self.expected.filter { counts[$0] == nil && (isLong || !Self.rare.contains($0)) }.map(\.description)
    }

    package var lines: [String] {
        counts.sorted { $0.key < $1.key }.map {
            "\($0.key): \($0.value.times), in \($0.value.schedules) of the schedules"
        }
            + ["\(counts.count) transitions visited, \(unvisited.count) of \(Self.expected.count) expected ones not"]
            + unvisited.map { "not visited: \($0)" }
    }

    package var jsonValue: JSONValue {
        .object([
            "visited": .array(
                counts.sorted { $0.key < $1.key }.map {
                    .object([
                        "part": .string($0.key.part), "what": .string($0.key.what), "where": .string($0.key.place),
                        "count": .integer(Int64($0.value.times)),
                        "schedules": .integer(Int64($0.value.schedules)),
                    ])
                }),
            "unvisited": .array(unvisited.map { .string($0) }),
        ])
    }

    /// What a topic is, in a word.
    static func kind(of topic: String) -> String {
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .desired?: "desired"
        case .trust?: "trust"
        case .groupMeta?: "group meta"
        case .membership?: "membership"
        case .reply(_, _, let reply)?: reply.rawValue
        case .presence(.device)?: "a device's presence"
        case .presence(.controller)?: "the controller's presence"
        case .heartbeat?: "heartbeat"
        case .hello?: "hello"
        case .received?: "received"
        case .barrier?: "barrier"
        case .request?: "request"
        case .response?: "response"
        case nil: "something else"
        }
    }
}
