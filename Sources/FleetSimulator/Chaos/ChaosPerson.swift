import DeviceAgent
import FleetProtocol
import FleetWorld
import Foundation
import Glibc

/// Who sits at a device, and enters its passcode.
final class ChaosPerson {
    let device: Int
    private let configuration: String
    private let output: String
    private let fleet: ChaosFleet
    private var child: Child?
    private var begun: Int64 = 0
    private var isToSet = false

    private static let patience: Int64 = 15_000

    init(device: Int, fleet: ChaosFleet) {
        self.device = device
        self.fleet = fleet
        configuration = fleet.path(of: fleet.devices[device - 1]) + "/agent.json"
        output = "\(fleet.folder)/fleetctl/person-d\(device).out"
    }

    private var passcode: String { "the code of d\(device)" }

    enum Act { case enter, enterWrongly, lock }

    /// Begins something, unless the last is still under way. Where none is set, that is what comes of entering one.
    func begin(_ act: Act, at now: Int64) throws {
        guard child == nil else { return }
        begun = now
        let words: [String] =
            switch act {
            case .enter, .enterWrongly: isToSet ? ["set"] : ["enter"]
            case .lock: ["lock"]
            }
        unlink(output)
        let child = try Child(
            try Child.path(of: "fleet-agent"), ["passcode"] + words + ["--config", configuration],
            Child.Streams(output: output, errors: output, takesInput: true))
        fleet.questions.append(child)
        child.send(line: act == .enterWrongly && !isToSet ? "a guess" : passcode)
        self.child = child
    }

    /// What the agent has said; nil while nothing is under way, or it has not.
    func answer(at now: Int64) -> String? {
        guard let child else { return nil }
        if now > begun + Self.patience { child.signal(SIGKILL) }
        guard child.ending != nil else { return nil }
        self.child = nil
        let said = FileManager.default.contents(atPath: output).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let text = said.trimmingCharacters(in: .whitespacesAndNewlines)
        isToSet = text == PasscodeResult(.notSet).text
        return text
    }

    static func isOpen(_ answer: String) -> Bool {
        [PasscodeResult(.done).text, PasscodeResult(.notAsked).text].contains(answer)
    }
}

extension Chaos {
    /// Lets people use apps, and enter passcodes, rightly or not.
    func live() throws {
        for person in people {
            if let answer = person.answer(at: now) { story.tell("the person at d\(person.device): \(answer)", at: now) }
            guard random.below(300) == 0 else { continue }
            let target = ChaosPlan.Target.app(person.device, 1 + random.below(fleet.apps.count))
            if let part = fleet.part(target), part.isRunning { part.child?.send(line: "use") }
            let act = random.below(100)
            try person.begin(act < 70 ? .enter : act < 85 ? .enterWrongly : .lock, at: now)
        }
    }

    /// Has the passcode entered everywhere. Returns the devices on which it was, or nothing asks for it.
    func open() async throws -> Set<DeviceID> {
        var opened: Set<DeviceID> = []
        // Where none is set, it is set by the second attempt; the first may be that of before.
        for _ in 0..<3 {
            var waiting = people.filter { !opened.contains(fleet.devices[$0.device - 1]) }
            for person in waiting { try person.begin(.enter, at: now) }
            while !waiting.isEmpty {
                try await look()
                waiting.removeAll { person in
                    guard let answer = person.answer(at: now) else { return false }
                    if ChaosPerson.isOpen(answer) { opened.insert(fleet.devices[person.device - 1]) }
                    return true
                }
            }
        }
        return opened
    }
}
