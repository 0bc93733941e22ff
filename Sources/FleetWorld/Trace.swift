/// What happened, for people: who, when, what. Off unless somebody reads it.
struct Trace {
    var isOn: Bool
    private(set) var lines: [String] = []

    init(isOn: Bool) { self.isOn = isOn }

    mutating func add(_ time: Int64, _ who: String, _ what: String) {
        let seconds = String(time / 1_000)
        let rest = String(time % 1_000)
        let stamp =
            String(repeating: " ", count: max(0, 5 - seconds.count)) + seconds + "."
            + String(repeating: "0", count: 3 - rest.count) + rest
        let name = who + String(repeating: " ", count: max(0, 12 - who.count))
        lines.append("\(stamp)  \(name)\(what)")
    }
}
