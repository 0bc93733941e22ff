import DeviceAgent
import FleetController
import FleetProtocol

/// What must be stored of the events that devices have kept, once everything has come to rest.
extension World {
    func check(_ machine: Machine, _ events: [FleetStore.StoredEvent: [UInt8]], _ gaps: [FleetStore.Gap]) {
        guard !machine.wasPutBack else { return }
        checkGaps(of: machine, events, gaps)
        for (key, kept) in machine.watch.events.promised {
            guard let stored = events[key] else {
                if machine.watch.events.dropped.contains(key) { continue }
                fail(.kept, "\(machine.name): event \(key.number) of boot \(key.boot) is missing")
                continue
            }
            let isEqual = (1...max(1, key.number)).contains { kept.wire(oldest: $0) == stored }
            if !isEqual { fail(.once, "\(machine.name): event \(key.number) of boot \(key.boot) is stored otherwise") }
        }
        for key in events.keys
        where key.device == machine.id && key.incarnation >= machine.oneSince
            && !machine.watch.events.kept.contains(key)
        {
            fail(.once, "\(machine.name): event \(key.number) of boot \(key.boot) is stored, and there is none")
        }
    }

    /// What is missing before the newest event of a boot is said to be lost, and nothing else is.
    private func checkGaps(
        of machine: Machine, _ events: [FleetStore.StoredEvent: [UInt8]], _ gaps: [FleetStore.Gap]
    ) {
        // What a backup lacks comes to light with the next event.
        guard !controller.wasPutBack else { return }
        // What was stored of an earlier incarnation may have been forgotten with it, and of one that was let in again.
        let incarnation = machine.enrollment.incarnation
        let isForgotten = controller.desired.removed[machine.id] ?? 0 >= incarnation
        let own = events.keys.filter { $0.device == machine.id && $0.incarnation == incarnation }
        for (boot, stored) in Dictionary(grouping: own, by: \.boot) {
            // Where not even its last event could stay, nothing tells what was before it.
            let last = machine.watch.events.kept.filter { $0.incarnation == incarnation && $0.boot == boot }.max {
                $0.number < $1.number
            }
            if last.map(machine.watch.events.dropped.contains) ?? false { continue }
            let numbers = Set(stored.map(\.number))
            let missing = Set(1...(numbers.max() ?? 1)).subtracting(numbers)
            let lost = gaps.filter { $0.device == machine.id && $0.incarnation == incarnation && $0.boot == boot }
                .reduce(into: Set<Int64>()) { $0.formUnion($1.numbers) }
            // Of that nobody can say whether it was here.
            let unsaid = isForgotten ? missing.subtracting(lost) : []
            guard missing.subtracting(unsaid) != lost else { continue }
            fail(
                .kept,
                "\(machine.name): of boot \(boot) the events \(missing.sorted()) are missing, and \(lost.sorted()) are"
                    + " said to be lost")
        }
        // Of what may have been forgotten nothing is missing that its device has not given up.
        guard !clones.contains(where: { $0.id == machine.id }) else { return }
        for gap in gaps
        where gap.device == machine.id && gap.incarnation < incarnation && gap.incarnation >= machine.oneSince {
            let given = gap.numbers.first { number in
                let event = FleetStore.StoredEvent(
                    device: gap.device, incarnation: gap.incarnation, boot: gap.boot, number: number)
                return machine.watch.events.kept.contains(event) && !machine.watch.events.dropped.contains(event)
            }
            guard let given else { continue }
            fail(
                .kept,
                "\(machine.name): event \(given) of incarnation \(gap.incarnation) is said to be lost, and was not dropped"
            )
        }
    }
}
