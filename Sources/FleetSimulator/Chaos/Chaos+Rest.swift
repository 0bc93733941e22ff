import FleetController
import FleetHome
import FleetProtocol
import FleetWorld
import Foundation
import Glibc

/// What must hold once the faults have ended.
extension Chaos {
    /// Asks fleetctl for several lists at once; nil when one of them has no answer.
    func ask(_ names: Set<String>) async throws -> [String: [JSONValue]]? {
        var questions: [String: ChaosQuestion] = [:]
        for (name, arguments) in ChaosSnapshot.questions where names.contains(name) {
            questions[name] = try ChaosQuestion(arguments + ["-o", "json"], named: name, fleet: fleet, at: now)
        }
        var answers: [String: [JSONValue]] = [:]
        while !questions.isEmpty {
            try await look()
            for (name, question) in questions {
                guard let answer = finish(question) else { continue }
                questions[name] = nil
                if case .accepted(let value) = answer { answers[name] = value?.arrayValue }
            }
        }
        return answers.count == names.count ? answers : nil
    }

    private func snapshot() async throws -> ChaosSnapshot? {
        let opened = try await open()
        let asked = now
        for part in fleet.parts {
            guard case .app(let device, let app) = part.target, part.isRunning else { continue }
            let file = fleet.file(of: fleet.apps[app - 1], on: fleet.devices[device - 1])
            for line in ["properties", "write \(file) \(ChaosSnapshot.takings)", "read \(file)"] {
                part.child?.send(line: line)
            }
        }
        guard let answers = try await ask(Set(ChaosSnapshot.questions.map(\.name))) else { return nil }
        take(answers["apps"] ?? [])
        let apps = transcripts.map { transcript in
            let properties = transcript.properties.flatMap { $0.at >= asked ? $0.value : nil }
            return ChaosSnapshot.App(
                device: transcript.device, app: transcript.app, number: fleet.apps.firstIndex(of: transcript.app) ?? 0,
                properties: properties, file: transcript.file, isOpened: opened.contains(transcript.device),
                mayHaveRetired: retired.contains([
                    (fleet.devices.firstIndex(of: transcript.device) ?? 0) + 1,
                    (fleet.apps.firstIndex(of: transcript.app) ?? 0) + 1,
                ]),
                hasKeyFile: access(fleet.keyFile(of: transcript.app, on: transcript.device), F_OK) == 0)
        }
        return ChaosSnapshot(
            fleet: fleet.home.context.fleet, answers: answers, apps: apps, devices: fleet.devices)
    }

    /// Waits until everything is as it has to be; what is not in time is broken.
    func settle(_ since: String, within limit: Duration) async throws {
        let begin = now
        let deadline = begin + Int64(limit / .milliseconds(1))
        var last = [ChaosFinding(.total, "the controller does not answer")]
        repeat {
            if let snapshot = try await snapshot() {
                last = snapshot.findings(ChaosModel(changes: changes, removals: removals, history: snapshot["history"]))
                if last.isEmpty {
                    return story.tell("\(since), and all is well after \(now - begin) ms", at: now)
                }
            }
            let next = now + 500
            while now < next { try await look() }
        } while now < deadline
        for finding in last {
            fail(ChaosFinding(finding.law, "\(limit) after \(since): \(finding.what)", device: finding.device))
        }
    }

    /// Changes everything once more: all of it must arrive, and nothing stays retired.
    func renew() async throws {
        guard let answers = try await ask(["history"]) else {
            return fail(ChaosFinding(.total, "the controller does not answer"))
        }
        let model = ChaosModel(changes: changes, removals: removals, history: answers["history"] ?? [])
        let number = changes.count + 1
        var keys = model.live.keys.filter { $0.aspect == .auth }
        for app in fleet.apps {
            for aspect in [Aspect.auth, .config] {
                let key = ChaosChange.Key(app: app, layer: .all, aspect: aspect)
                if !keys.contains(key) { keys.append(key) }
            }
        }
        let documents = keys.sorted { $0.description < $1.description }.enumerated().map { index, key in
            let tag = "c\(number).\(index)"
            let value =
                key.aspect == .auth
                ? ChaosOperator.auth(.authorized, tag) : .object(["tag": .string(tag)])
            return ChaosChange.Document(key: key, tag: tag, value: value)
        }
        let change = ChaosChange(number: number, kind: .apply(documents, isAgain: false))
        changes.append(change)
        let question = try ask(change, isDry: false)
        while true {
            try await look()
            if let answer = finish(question) {
                note(answer, of: change)
                if case .accepted = answer { retired = [] }
                if case .unknown(let reason) = answer {
                    fail(ChaosFinding(.answered, "with no fault there is no answer: \(reason)"))
                }
                return
            }
        }
    }

    /// What can be told only when all is over: from what apps printed, from logs, and from the controller's store.
    func finish() async throws {
        guard let answers = try await ask(["history", "apps"]) else {
            return fail(ChaosFinding(.total, "the controller does not answer"))
        }
        let model = ChaosModel(changes: changes, removals: removals, history: answers["history"] ?? [])
        for transcript in transcripts {
            let name = "\(transcript.app) on \(transcript.device)"
            let device = transcript.device.text
            if let (what, at) = model.stepBack(in: transcript.heard) {
                fail(ChaosFinding(.forward, "\(name), at \(at) ms: \(what)", device: device))
            }
            for what in transcript.violations + (transcript.suspicion.map { [$0] } ?? []) {
                fail(ChaosFinding(.erased, "\(name): \(what)", device: device))
            }
        }
        checkLogs()
        await fleet.part(.controller)?.leave()
        let store = try FleetStore(path: fleet.home.databasePath)
        let events = try store.events()
        try store.close()
        try ChaosEvents(events).check(self, statuses: answers["apps"] ?? [])
    }

    private func checkLogs() {
        let folder = fleet.folder + "/log"
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            guard let data = FileManager.default.contents(atPath: "\(folder)/\(name)") else { continue }
            let text = String(decoding: data, as: UTF8.self)
            for word in ["Fatal error", "AddressSanitizer", "Segmentation fault"] where text.contains(word) {
                fail(ChaosFinding(.total, "\(name) has '\(word)'"))
            }
        }
    }
}
