import FleetProtocol

/// What the messages of one connection say of which device is there.
struct PresenceWatch {
    /// What each device has said that has said itself that it is there, and has not left since.
    private(set) var present: [DeviceID: Presence] = [:]
    /// When each of those said so first.
    private(set) var presentSince: [DeviceID: Int64] = [:]
    /// The newest incarnation that each has said so as.
    private var spoken: [DeviceID: Int64] = [:]
    /// Devices that have spoken on this connection.
    private(set) var heard: Set<DeviceID> = []
    /// Of which start of theirs the newest reports are.
    private var starts: [DeviceID: ReportOrder] = [:]
    /// Devices that have left their presence at the broker, or have said so since.
    private(set) var announced: [DeviceID: Presence] = [:]
    /// Devices whose last word on this connection was that they leave, or their will.
    private(set) var gone: Set<DeviceID> = []
    /// When those connected that have connected anew since this connection began.
    private(set) var arrived: [DeviceID: Int64] = [:]
    private(set) var isNew = false
    /// The newest start that each device has announced.
    private var newest: [DeviceID: ReportOrder] = [:]
    /// The newest that it has said itself, on this connection.
    private var spokenStarts: [DeviceID: ReportOrder] = [:]
    /// Devices that came back from before their newest start, or have gone on from before it, in the messages of this moment:
    /// two run, or one was put back.
    private(set) var doubled: [DeviceID: ReportOrder] = [:]
    /// The messages of this moment have shown what the broker has kept.
    var isReadingBack = false
    /// Devices that have left, or come, in the messages of this moment.
    private(set) var changed: Set<DeviceID> = []

    mutating func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, at now: Int64) {
        isReadingBack = isReadingBack || isRetained
        switch Address(topic: topic, in: SimulatedFleet.id) {
        case .presence(.device(let device)):
            isNew = true
            guard let said = try? Presence(json: payload, limit: Presence.maximumSize) else { return }
            switch said.state {
            case .online:
                if gone.remove(device) != nil || announced[device].map({ $0.connection != said.connection }) ?? false {
                    arrived[device] = now
                }
                announced[device] = said
                let last = newest[device] ?? said.start
                newest[device] = max(last, said.start)
                if let known = spokenStarts[device], said.isBranch(behind: known) { doubled[device] = last }
                guard !isRetained else { return }
                // A status of a still later start, which has not announced itself, says nothing of a copy.
                if said.start < last, starts[device] ?? last <= last { doubled[device] = last }
                spokenStarts[device] = max(spokenStarts[device] ?? said.start, said.start)
                heard.insert(device)
                spoken[device] = max(spoken[device] ?? 0, said.incarnation)
                if present.updateValue(said, forKey: device)?.connection != said.connection {
                    changed.insert(device)
                    presentSince[device] = now
                }
            case .offline:
                if announced[device]?.connection == said.connection { announced[device] = nil }
                let start = said.start
                guard let known = present[device] else { return }
                if known.connection == said.connection {
                    present[device] = nil
                    // Its next start may have spoken already: statuses overtake presences.
                    guard starts[device].map({ $0 <= start }) ?? true else { return }
                    heard.remove(device)
                    gone.insert(device)
                    changed.insert(device)
                } else if start > known.start {
                    // Of a later start, whose coming the broker may have lost: nobody knows.
                    present[device] = nil
                }
            }
        case .reply(let device, _, let reply):
            guard let incarnation = Machine.number("incarnation", in: payload),
                let boot = Machine.number("boot", in: payload)
            else { return }
            let start = ReportOrder(incarnation: incarnation, boot: boot, sequence: 0)
            guard !isRetained else { return }
            // A copy's status says nothing of who is there; events of earlier starts are this one's to tell.
            let last = [starts[device], newest[device]].compactMap(\.self).max()
            let isCopy = last.map { start < $0 } ?? false
            if gone.contains(device) {
                isNew = true
                // Of a later start, whose coming the broker may have lost.
                if last.map({ start > $0 }) ?? true { gone.remove(device) }
            }
            if !isCopy || reply != .status { heard.insert(device) }
            starts[device] = max(starts[device] ?? start, start)
        default: break
        }
    }

    /// A device that is no more, or begins anew.
    mutating func forget(_ device: DeviceID) {
        present[device] = nil
        announced[device] = nil
        newest[device] = nil
        spokenStarts[device] = nil
        doubled[device] = nil
        gone.remove(device)
    }

    /// As what it has spoken, in presences or statuses: what an earlier one has said may come behind that.
    func incarnation(of device: DeviceID) -> Int64? {
        spoken[device].map { max($0, starts[device]?.incarnation ?? 0) }
    }

    mutating func checked() {
        isNew = false
        doubled = [:]
        changed = []
    }
}

extension Presence {
    /// Where this run of the agent stands among all reports: before its first status.
    fileprivate var start: ReportOrder { ReportOrder(incarnation: incarnation, boot: boot, sequence: 0) }

    /// Whether it is a later start that follows one from before `known`.
    fileprivate func isBranch(behind known: ReportOrder) -> Bool {
        start > known && incarnation == known.incarnation && previousBoot.map { $0 < known.boot } ?? false
    }
}
