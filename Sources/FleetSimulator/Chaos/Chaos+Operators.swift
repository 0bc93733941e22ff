import FleetProtocol
import FleetWorld
import Foundation

/// Those who change everything meanwhile, and the apps that try what they may not.
extension Chaos {
    func operate() throws {
        try finishQuestions()
        for index in seats.indices where seats[index].question == nil && now >= seats[index].nextAt {
            let change = seats[index].person.change(changes.count + 1)
            // Its number is taken now: the answer comes in any order.
            changes.append(change)
            seats[index].change = change
            // Some look first: that changes nothing, and what would be refused is refused then.
            seats[index].isLooking = change.number % 5 == 0
            seats[index].question = try ask(change, isDry: seats[index].isLooking)
        }
    }

    /// Has fleetctl ask for a change, or what it would do.
    func ask(_ change: ChaosChange, isDry: Bool) throws -> ChaosQuestion {
        var arguments = change.arguments + (isDry ? ["--dry-run"] : [])
        if let file = change.file {
            let path = "\(fleet.folder)/fleetctl/\(change.number).yaml"
            try Data(file.utf8).write(to: URL(fileURLWithPath: path))
            arguments += ["-f", path]
        }
        story.tell("\(change.why) \(isDry ? "asks what comes of" : "asks"): \(change.story)", of: nil, at: now)
        let name = "\(change.number)\(isDry ? "-dry" : "")"
        return try ChaosQuestion(arguments, named: name, fleet: fleet, at: now)
    }

    func finishQuestions() throws {
        for index in seats.indices {
            guard let question = seats[index].question, let change = seats[index].change,
                let answer = finish(question)
            else { continue }
            if seats[index].isLooking {
                check(answer, of: change, named: "a dry run of \(change.why)")
                seats[index].isLooking = false
                seats[index].question = try ask(change, isDry: false)
                continue
            }
            note(answer, of: change)
            seats[index].question = nil
            seats[index].nextAt = now + seats[index].person.pause()
        }
    }

    /// What fleetctl has answered, once it has ended.
    func finish(_ question: ChaosQuestion) -> ChaosChange.Answer? {
        guard let ending = question.ending(at: now) else { return nil }
        if ending.isTrap { fail(ChaosFinding(.total, "fleetctl \(question.text) ended with \(ending)")) }
        switch ending {
        case .exited(0): return .accepted(question.value)
        case .exited(1): return .refused(question.errors)
        case .exited, .signalled: return .unknown(question.errors)
        }
    }

    func note(_ answer: ChaosChange.Answer, of change: ChaosChange) {
        changes[change.number - 1].answer = answer
        switch answer {
        case .accepted(let value):
            report.accepted += 1
            let revisions = value?["results"]?.arrayValue?.compactMap { $0["revision"]?.integerValue } ?? []
            story.tell("\(change.why) was accepted: revisions \(revisions)", at: now)
        case .refused(let reason): story.tell("\(change.why) was refused: \(reason)", at: now)
        case .unknown(let reason): story.tell("\(change.why) has no answer: \(reason)", at: now)
        }
        check(answer, of: change, named: change.why)
    }

    private func check(_ answer: ChaosChange.Answer, of change: ChaosChange, named name: String) {
        guard case .refused(let reason) = answer else { return }
        switch change.kind {
        case .apply, .group: fail(ChaosFinding(.answered, "\(name) was refused: \(reason)"))
        case .delete, .groupDelete: break  // There may be nothing to delete.
        }
    }

    /// Lets an app try what its policy may block, with a name that comes once.
    func attempt() {
        guard random.chance(2) else { return }
        let target = ChaosPlan.Target.app(1 + random.below(fleet.devices.count), 1 + random.below(fleet.apps.count))
        guard let part = fleet.part(target), part.isRunning else { return }
        attempts += 1
        part.child?.send(line: "open-url \(ChaosEvents.url)\(attempts)")
    }
}
