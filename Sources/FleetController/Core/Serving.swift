import FleetProtocol

/// A connection whose broker holds the controller's wish.
struct Serving {
    /// A device's connection, and what a hello to it says.
    struct Greeting {
        let connection: RandomID
        let incarnation: Int64
        let boot: Int64
        /// Of its presence.
        var nonce: RandomID?
        var lost: Set<Hello.Lost> = []
        /// Whose documents the device is to have, until it has had this.
        var apps: [AppID]
        /// Behind how many heartbeats it went.
        var beats = 0
        /// Of all greetings of this connection.
        var number = 0

        init(_ presence: Presence) {
            connection = presence.connection
            incarnation = presence.incarnation
            boot = presence.boot
            nonce = presence.nonce
            apps = presence.apps.map(\.id)
        }
    }

    /// A publish that is to come back.
    private struct Echo {
        let number: Int
        /// How many heartbeats were before it, and before the first of its topic that has not come back.
        let beats: Int
        let firstBeats: Int
    }

    /// Devices that a hello is still to go to.
    private(set) var waiting: [DeviceID: Greeting] = [:]
    /// Devices that have had one, and have not left since.
    private(set) var greeted: [DeviceID: Greeting] = [:]
    /// Greetings in their order, from `next` on. One that another one of the device has followed does not count any more.
    private var round: [(device: DeviceID, number: Int)] = []
    private var next = 0
    private var greetings = 0
    /// In at most so many heartbeats each device is compared once.
    private static let roundLength = 10
    /// At which heartbeat devices were told last what was lost: once a round is enough where it does not help.
    private var told: [DeviceID: Int] = [:]
    /// Devices that are asked with the next heartbeat.
    private var later: [DeviceID: Set<Hello.Lost>] = [:]
    /// Heartbeats of this connection.
    private var beats = 0
    /// At which of them a device was first told that its documents are not those that it should have.
    private var firstTold: [DeviceID: Int] = [:]
    /// After so many heartbeats in which telling has not helped somebody has to look.
    private static let patience = 2 * roundLength
    private static let unshownBeats = 5
    /// Events stored, and not yet told to the device.
    var unsaid: [Collector.MarkedBoot: Int64] = [:]
    /// Own publishes below desired/ that have not come back yet, in the order of their numbers: until it is back what comes is
    /// older.
    private var echoes: [Address: Echo] = [:]
    private var publishes = 0
    /// Whether somebody was told that such do not come back, since all were back last.
    private var isUnshownTold = false
    /// What the broker was found without, until it is back: a hello says that all is there.
    private var missing: Set<Address> = []
    /// The controller's own marker, said behind each heartbeat.
    let barrier: [UInt8]
    /// Heartbeats behind which it has not come back.
    private(set) var silence = 0
    var lastHeartbeat: Timestamp?
    var lastMarks: Timestamp?

    init(barrier: [UInt8]) {
        self.barrier = barrier
    }

    mutating func markerCame() { silence = 0 }

    /// Takes in what devices have said. Answers which of them somebody has to look at.
    mutating func note(_ collector: Collector) -> [DeviceID] {
        for device in collector.gone { forget(device) }
        for (device, presence) in collector.arrived { greet(device, presence) }
        for device in collector.intact { firstTold[device] = nil }
        for device in collector.doubted where later[device] == nil { later[device] = [] }
        unsaid.merge(collector.marks) { $1 }
        return collector.lost.filter { tell($0.key, $0.value) }.keys.sorted()
    }

    /// A device says that it is there, and its connection has a hello. One that says so again behind a later heartbeat may
    /// have missed that, and has another: one a heartbeat at most, for it says so too when it answers.
    mutating func greet(_ device: DeviceID, _ presence: Presence) {
        if waiting[device]?.connection == presence.connection {
            // What it is to be told stays: nobody tells it again in this round.
            if let nonce = presence.nonce { waiting[device]?.nonce = nonce }
            waiting[device]?.apps = presence.apps.map(\.id)
            return
        }
        if let had = greeted[device], had.connection == presence.connection {
            let asks = presence.nonce != nil && presence.nonce != had.nonce
            guard asks || had.beats < beats, waiting[device] == nil else { return }
        }
        waiting[device] = Greeting(presence)
    }

    /// Tells a device what was lost, once a round. Answers whether somebody has to look at it, since its documents are
    /// others for long although it was told.
    private mutating func tell(_ device: DeviceID, _ loss: Collector.Loss) -> Bool {
        let pause = max(1, min(greeted.count, Self.roundLength))
        guard told[device].map({ beats - $0 >= pause }) ?? true else { return false }
        told[device] = beats
        var greeting = Greeting(loss.presence)
        greeting.lost = loss.lost.union(waiting[device]?.lost ?? [])
        waiting[device] = greeting
        guard loss.lost.contains(.documents) else { return false }
        let first = firstTold[device] ?? beats
        firstTold[device] = first
        return beats - first >= Self.patience
    }

    /// A device that is there is to say again who it is, and what was lost: at once where it has had its hello, else with the
    /// next heartbeat, since it may answer its first one with less.
    mutating func ask(_ device: DeviceID, lost: Set<Hello.Lost>) {
        let had = greeted[device]
        if let next = waiting[device], next.connection != had?.connection {
            later[device, default: []].formUnion(lost)
        } else if var greeting = waiting[device] ?? had {
            greeting.lost = (waiting[device]?.lost ?? []).union(lost)
            waiting[device] = greeting
        }
    }

    mutating func published(_ address: Address) {
        publishes += 1
        echoes[address] = Echo(number: publishes, beats: beats, firstBeats: echoes[address]?.firstBeats ?? beats)
    }

    mutating func came(back address: Address) {
        echoes[address] = nil
        missing.remove(address)
        if echoes.isEmpty { isUnshownTold = false }
    }

    /// All that was published until now mends what the broker held.
    mutating func awaitRepair() { missing = Set(echoes.keys) }

    /// Whether somebody is to be greeted now: while the broker may have refused what mends it, nobody is told that all is there.
    var canGreet: Bool { missing.isEmpty && !waiting.isEmpty }

    func isUnderWay(_ address: Address) -> Bool { echoes[address] != nil }

    /// Own publishes that have not come back for a heartbeat or two, at most `limit` of them: something was dropped on its
    /// way. What says whom to believe comes first, the rest in the order of the first time, which devices follow.
    func overdueEchoes(_ limit: Int) -> [Address] {
        let overdue = echoes.filter { $0.value.beats + 2 <= beats }
        func place(_ address: Address, _ echo: Echo) -> Int { address == .trust ? 0 : echo.number }
        return Array(overdue.sorted { place($0.key, $0.value) < place($1.key, $1.value) }.map(\.key).prefix(limit))
    }

    /// Of own publishes that were repeated, and have not come back for some heartbeats all the same, the first of `overdue` and
    /// how many there are: once, until all are back.
    mutating func unshown(of overdue: [Address]) -> (first: Address, count: Int)? {
        guard !isUnshownTold else { return nil }
        let unshown = echoes.filter { $0.value.firstBeats + Self.unshownBeats <= beats }
        guard let first = overdue.first(where: { unshown[$0] != nil }) else { return nil }
        isUnshownTold = true
        return (first, unshown.count)
    }

    mutating func forget(_ device: DeviceID) {
        waiting[device] = nil
        greeted[device] = nil
        firstTold[device] = nil
        told[device] = nil
    }

    /// The next devices in the order of their ids that a hello goes to, at most `limit` of them; they count as greeted.
    mutating func takeWaiting(_ limit: Int) -> [(device: DeviceID, greeting: Greeting)] {
        let taken = waiting.sorted { $0.key < $1.key }.prefix(limit)
        for (device, greeting) in taken {
            waiting[device] = nil
            greetings += 1
            var greeting = greeting
            (greeting.beats, greeting.number, greeting.apps) = (beats, greetings, [])
            greeted[device] = greeting
            round.append((device, greetings))
        }
        if round.count > 2 * greeted.count + 16 {
            round = round[next...].filter { greeted[$0.device]?.number == $0.number }
            next = 0
        }
        return taken.map { ($0.key, $0.value) }
    }

    /// Those that were greeted longest ago have a hello again: each answers with its presence, and so shows whether anything
    /// was dropped on the way. Nobody waits for more than ten heartbeats.
    mutating func askNext() {
        beats += 1
        silence += 1
        let due = later
        later = [:]
        for (device, lost) in due { ask(device, lost: lost) }
        var share = (greeted.count + Self.roundLength - 1) / Self.roundLength
        while share > 0, next < round.count {
            let (device, number) = round[next]
            next += 1
            guard var greeting = greeted[device], greeting.number == number else { continue }
            share -= 1
            greeting.lost = []
            if waiting[device] == nil { waiting[device] = greeting }
        }
    }
}
