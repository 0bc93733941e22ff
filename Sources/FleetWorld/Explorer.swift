import Dispatch
import Synchronization

/// Runs schedules, and makes what it finds small enough to be read.
package struct Explorer: Sendable {
    private let fleet: SimulatedFleet
    private let fault: Fault?

    package struct Finding: Sendable {
        /// As the seed gives it.
        package let found: Schedule
        /// The shortest that breaks the same law.
        package let schedule: Schedule
        package let violation: Violation
        /// What happened in ``schedule``: who, when, what.
        package let story: [String]
    }

    package init(fault: Fault? = nil) throws {
        fleet = try SimulatedFleet()
        self.fault = fault
    }

    /// Runs one schedule, and tells its story.
    package func run(_ schedule: Schedule) throws -> (violation: Violation?, story: [String]) {
        let world = try World(schedule, Workshop(fleet), fault: fault, isTraced: true)
        let violation = world.run()
        return (violation, world.trace.lines)
    }

    /// Runs the schedules of `count` seeds from `seed` on, of `theme` alone if there is one, on `threads` threads. Ends
    /// early when `limit` have failed, or when the time is over. `noting` hears how many have run after each, and of a
    /// failure at once, one at a time.
    package func explore(
        seed: UInt64, theme: Schedule.Theme? = nil, count: Int, threads: Int = 1, limit: Int = 10,
        within time: Duration = .seconds(86_400), coverage: Coverage? = nil,
        noting: @Sendable (Int, (seed: UInt64, violation: Violation)?) -> Void = { _, _ in }
    ) throws -> (failed: [(seed: UInt64, violation: Violation)], ran: Int) {
        struct Progress {
            var failed: [(seed: UInt64, violation: Violation)] = []
            var next = 0
            var ran = 0
            var visited: [Coverage.Transition: Coverage.Visits] = [:]
            var error: (any Error)?
        }
        let end = ContinuousClock.now + time
        let progress = Mutex(Progress())
        let isCounting = coverage != nil
        DispatchQueue.concurrentPerform(iterations: threads) { _ in
            let visited = isCounting ? Coverage() : nil
            let workshop: Workshop
            do { workshop = try Workshop(fleet) } catch { return progress.withLock { $0.error = error } }
            while true {
                let range: Range<Int>? = progress.withLock { progress in
                    guard progress.next < count, progress.failed.count < limit, progress.error == nil,
                        ContinuousClock.now < end
                    else { return nil }
                    let start = progress.next
                    progress.next = min(count, start + 4)
                    return start..<progress.next
                }
                guard let range else { break }
                for index in range {
                    let met = visited.map { _ in Coverage() }
                    let failure = violation(
                        of: Schedule(seed: seed &+ UInt64(index), theme: theme), workshop, met)
                    if let met { visited?.add(met.counts) }
                    progress.withLock { progress in
                        progress.ran += 1
                        let failed = failure.map { (seed: seed &+ UInt64(index), violation: $0) }
                        if let failed { progress.failed.append(failed) }
                        noting(progress.ran, failed)
                    }
                }
            }
            if let counts = visited?.counts { progress.withLock { $0.visited.merge(counts, uniquingKeysWith: +) } }
        }
        let result = progress.withLock { $0 }
        if let error = result.error { throw error }
        coverage?.add(result.visited)
        return (result.failed.sorted { $0.seed < $1.seed }, result.ran)
    }

    private func violation(
        of schedule: Schedule, _ workshop: Workshop, _ coverage: Coverage? = nil
    ) -> Violation? {
        do {
            return try World(schedule, workshop, fault: fault, coverage: coverage).run()
        } catch {
            return Violation(law: .total, what: "\(error)")
        }
    }

    // MARK: Shrinking

    /// Leaves out whatever the violation does not need.
    package func shrink(_ schedule: Schedule, _ violation: Violation) throws -> Finding {
        let workshop = try Workshop(fleet)
        var best = schedule
        func fails(_ candidate: Schedule) -> Bool { self.violation(of: candidate, workshop)?.law == violation.law }
        var isProgress = true
        while isProgress {
            isProgress = false
            var size = max(1, best.steps.count / 2)
            while size >= 1 {
                var start = 0
                while start < best.steps.count {
                    var candidate = best
                    candidate.steps.removeSubrange(start..<min(start + size, best.steps.count))
                    if fails(candidate) {
                        best = candidate
                        isProgress = true
                    } else {
                        start += size
                    }
                }
                size /= 2
            }
            for smaller in Self.smaller(best) where fails(smaller) {
                best = smaller
                isProgress = true
                break
            }
        }
        let (found, story) = try run(best)
        return Finding(found: schedule, schedule: best, violation: found ?? violation, story: story)
    }

    private static func smaller(_ schedule: Schedule) -> [Schedule] {
        var smaller: [Schedule] = []
        let devices = (schedule.steps.compactMap(\.action.device).max() ?? 0) + 1
        if devices < schedule.devices {
            var candidate = schedule
            candidate.devices = devices
            smaller.append(candidate)
        }
        if schedule.broker != .honest {
            var candidate = schedule
            candidate.broker = .honest
            smaller.append(candidate)
        }
        if schedule.apps > 1 {
            var candidate = schedule
            candidate.apps -= 1
            if candidate.steps.allSatisfy({ $0.action.app ?? 0 < candidate.apps }) { smaller.append(candidate) }
        }
        return smaller
    }
}

extension Action {
    /// The device that it is about.
    var device: Int? {
        switch self {
        case .crashAgent(let device, _), .reboot(let device), .fillDisk(let device, _), .setClock(let device, _),
            .image(let device), .putBack(let device), .crashApp(let device, _), .reinstallApp(let device, _),
            .answer(let device, _), .attempt(let device, _), .retire(let device, _), .cutDevice(let device, _),
            .forge(let device, _), .stopAgent(let device), .unplug(let device, _), .freeze(let device, _, _),
            .refuse(let device, _), .intrude(let device, _), .closeApp(let device, _, _), .display(let device, _),
            .enterCode(let device, _, _), .remove(let device), .enroll(let device, _), .clone(let device),
            .stopClock(let device, _), .stall(let device, _, _), .copy(let device, _), .guess(let device, _):
            device
        case .refuseSaid(let device, _), .hide(let device, _, _): device
        case .request(_, .apply(_, .device(let device), _, _, _)), .request(_, .delete(_, .device(let device))): device
        case .request(_, .group(_, _, let members)): members == 0 ? nil : Int.bitWidth - 1 - members.leadingZeroBitCount
        case .request, .cutController, .cutOperator, .crashBroker, .stopBroker, .ageBroker, .saveBroker,
            .crashController, .fillControllerDisk, .backUpController, .putBackController, .setControllerClock,
            .hideHome, .putBackHome, .copyHome, .freezeController, .question, .renewTrust, .pause, .stallController,
            .stallBroker,
            .lockOut:
            nil
        }
    }

    var app: Int? {
        switch self {
        case .crashApp(_, let app), .reinstallApp(_, let app), .answer(_, let app), .attempt(_, let app),
            .retire(_, let app), .refuse(_, let app), .intrude(_, let app), .display(_, let app),
            .enterCode(_, let app, _), .closeApp(_, let app, _),
            .request(_, .apply(let app, _, _, _, _)), .request(_, .delete(let app, _)),
            .request(_, .layers(let app, _, _)):
            app
        default: nil
        }
    }
}
