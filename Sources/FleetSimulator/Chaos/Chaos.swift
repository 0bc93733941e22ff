import FleetHome
import FleetProtocol
import FleetWorld
import Foundation
import Glibc

/// A real fleet in which everything goes wrong that one machine can bring about, and the promises that it must keep all
/// the same. Broker, controller, agents, apps and operators are processes; what holds is looked at from outside alone.
///
/// One loop does everything, a look at all parts every ten milliseconds.
final class Chaos {
    let minutes: Double
    let fleet: ChaosFleet
    let plan: ChaosPlan
    var report: ChaosReport
    var story: ChaosStory
    var transcripts: [ChaosTranscript]
    var changes: [ChaosChange] = []
    var findings: [ChaosFinding] = []
    private let start = ContinuousClock.now
    private let say: (String) -> Void
    var steps: ArraySlice<ChaosPlan.Step> = []
    var seats: [Seat] = []
    let people: [ChaosPerson]
    private var reader: ChaosQuestion?
    var random: SplitMix64
    private var orders: [String: ReportOrder] = [:]
    /// When links get well again.
    var heals: [ChaosPlan.Link: Int64] = [:]
    /// What is done about which device.
    var admissions: [Int: Admission] = [:]
    var removals: [ChaosRemoval] = []
    /// Device and app of those that have been told to retire themselves, and not been authorized for certain since.
    var retired: Set<[Int]> = []
    private var converged = 0
    var attempts = 0

    /// An operator, and what he is doing.
    struct Seat {
        var person: ChaosOperator
        var nextAt: Int64
        var change: ChaosChange?
        var question: ChaosQuestion?
        /// What is asked is what would come of the change.
        var isLooking = false
    }

    init(minutes: Double, seed: UInt64, fleet: ChaosFleet, say: @escaping (String) -> Void) {
        self.minutes = minutes
        self.fleet = fleet
        self.say = say
        plan = ChaosPlan(
            seed: seed, duration: Int64(minutes * 60_000), devices: fleet.devices.count, apps: fleet.apps.count)
        report = ChaosReport(minutes: minutes, seed: seed)
        story = ChaosStory(file: fleet.folder + "/story.log")
        random = SplitMix64(seed: seed ^ 0xA99)
        transcripts = fleet.devices.flatMap { device in
            fleet.apps.map { app in
                ChaosTranscript(
                    of: app, on: device, output: fleet.output(of: app, on: device),
                    keyFile: fleet.keyFile(of: app, on: device))
            }
        }
        people = (1...fleet.devices.count).map { ChaosPerson(device: $0, fleet: fleet) }
        let groups = (1...3).map { GroupID(unchecked: "g\($0)") }
        for (index, group) in groups.enumerated() {
            let person = ChaosOperator(
                seed: seed ^ UInt64(0x0BE4_0000 + index), group: group, devices: fleet.regulars, apps: fleet.apps,
                groups: groups)
            seats.append(Seat(person: person, nextAt: 0))
        }
    }

    var now: Int64 { Int64((ContinuousClock.now - start) / .milliseconds(1)) }

    // MARK: The course of it

    func run() async throws {
        try await fleet.prepare()
        story.tell("seed \(report.seed): \(plan.steps.count) faults, \(fleet.devices.count) devices", at: now)
        try await beginning()
        let begin = now
        steps = plan.steps.map { ChaosPlan.Step(at: $0.at + begin, fault: $0.fault) }[...]
        let end = begin + Int64(minutes * 60_000)
        for index in seats.indices { seats[index].nextAt = begin }
        var nextLine = begin + 10_000
        var nextCopy = begin + 3_000
        while now < end {
            try await look()
            while let step = steps.first, step.at <= now {
                steps.removeFirst()
                try perform(step.fault)
            }
            try admit()
            try operate()
            attempt()
            try live()
            if now >= nextCopy {
                // Written a while ago, and meanwhile more has happened.
                fleet.keepDatabase()
                fleet.saveDatabase(at: now)
                nextCopy += 6_000
            }
            if now >= nextLine {
                nextLine += 10_000
                progress()
            }
        }
        try await heal()
        try await settle("the faults have ended", within: .seconds(90))
        try await renew()
        try await settle("everything was changed once more", within: .seconds(60))
        try await finish()
    }

    private func beginning() async throws {
        let deadline = now + 90_000
        while now < deadline {
            try await look()
            guard let answers = try await ask(["devices"]) else { continue }
            let online = answers["devices"]?.filter { $0["state"]?.stringValue == "online" }.count
            if online == fleet.devices.count { return story.tell("every device is connected", at: now) }
        }
        throw LoadError("the fleet did not come up within 90 s: the logs are in \(fleet.folder)/log")
    }

    /// Everything that is due now, and a short sleep.
    func look() async throws {
        try await Task.sleep(for: .milliseconds(10))
        for part in fleet.parts {
            for news in try part.look(at: now) { tell(news, of: part.target) }
        }
        for (link, at) in heals where now >= at {
            heals[link] = nil
            fleet.links[link]?.set(.open)
            story.tell("\(link) is well again", of: subject(of: link), at: now)
        }
        for index in transcripts.indices { transcripts[index].read(at: now) }
    }

    private func tell(_ news: ChaosPart.News, of target: ChaosPlan.Target) {
        let subject = subject(of: target)
        switch news {
        case .started: story.tell("\(target) starts", of: subject, at: now)
        case .continued: story.tell("\(target) goes on", of: subject, at: now)
        case .hasRoom: story.tell("the disk of \(target) has room again", of: subject, at: now)
        case .ended(let ending, let isOwnFault):
            story.tell("\(target) ended with \(ending)", of: subject, at: now)
            if isOwnFault { fail(ChaosFinding(.total, "\(target) ended by itself with \(ending)", device: subject)) }
        case .doesNotEnd:
            fail(ChaosFinding(.total, "\(target) did not end within 20 s of a SIGTERM", device: subject))
        }
    }

    func fail(_ finding: ChaosFinding) {
        story.tell("BROKEN: \(finding.law.rawValue): \(finding.what)", of: finding.device, isFinding: true, at: now)
        if findings.isEmpty {
            say("broken: \(finding.law.rawValue): \(finding.what)")
        }
        if findings.count < 100 { findings.append(finding) }
    }

    // MARK: Progress

    private func progress() {
        let faults = report.faults.values.reduce(0, +)
        say(
            "\(now / 1_000) s: \(faults) faults, \(report.accepted) of \(changes.count) changes applied, \(converged)"
                + " of \(fleet.devices.count) devices converged")
        if reader == nil {
            reader = try? ChaosQuestion(["get", "apps", "-o", "json"], named: "progress", fleet: fleet, at: now)
        } else if let reader, let ending = reader.ending(at: now) {
            if ending == .exited(0), let apps = reader.value?.arrayValue { take(apps) }
            self.reader = nil
        }
    }

    /// Counts the devices of which nothing is awaited, and looks whether any status went back.
    func take(_ apps: [JSONValue]) {
        var waiting: Set<String> = []
        for status in apps {
            let name = "\(status["app"]?.stringValue ?? "") on \(status["device"]?.stringValue ?? "")"
            let order = ReportOrder(
                incarnation: status["incarnation"]?.integerValue ?? 0, boot: status["boot"]?.integerValue ?? 0,
                sequence: status["seq"]?.integerValue ?? 0)
            if let before = orders[name], order < before {
                fail(
                    ChaosFinding(
                        .order, "the status of \(name) went from \(before) back to \(order)",
                        device: status["device"]?.stringValue))
            }
            orders[name] = order
            let outcomes = status["policies"]?.memberValues?.compactMap { $0.value["attempt"]?["outcome"]?.stringValue }
            if outcomes?.contains(where: { ["pending", "delivered"].contains($0) }) ?? true {
                waiting.insert(status["device"]?.stringValue ?? "")
            }
        }
        converged = fleet.devices.count - waiting.count
    }
}
