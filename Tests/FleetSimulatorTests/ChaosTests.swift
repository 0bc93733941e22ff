import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetSimulator

@Suite("Real processes that fail at random", .serialized)
struct ChaosTests {
    private let d1 = DeviceID(unchecked: "d1")

    private func g(_ number: Int) -> GroupID { GroupID(unchecked: "g\(number)") }

    @Test("a fleet of real processes keeps its promises through half a minute of chaos, and nothing of it is left")
    func short() async throws {
        try await withFixture { fixture in
            let folder = try fixture.temporaryFolder()
            let result = try await run(
                program(named: "fleet-sim"), ["chaos", "--minutes", "0.35", "--seed", "4711", "-o", "json"],
                environment: ["TMPDIR": folder.path])
            #expect(result.status == 0, "\(result.errors)")
            let report = try JSONValue(json: Array(result.output.utf8), limit: .max)
            #expect(report["seed"] == 4711)
            #expect(report["failures"] == [])
            #expect(report["faults"]?.memberValues?.isEmpty == false)
            #expect(report["accepted"]?.integerValue ?? 0 > 0, "\(report.jsonText)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        }
    }

    @Test("asked to end in the middle, chaos ends every process that it started, also those it has stopped")
    func ended() async throws {
        try await withFixture { fixture in
            let (chaos, folder) = try await start(fixture)
            try await until("the first line of progress") {
                chaos.errors.contains("changes applied")
            }
            #expect(!processes(naming: folder).isEmpty)
            chaos.signal(SIGTERM)
            #expect(try await within { await chaos.exited() } == 130)
            #expect(processes(naming: folder).isEmpty)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        }
    }

    @Test("killed in the middle, chaos leaves no process behind")
    func killed() async throws {
        try await withFixture { fixture in
            let (chaos, folder) = try await start(fixture)
            try await until("its agents run") {
                processes(naming: folder).count > 4
            }
            _ = await chaos.killNow()
            try await until("all are gone") { processes(naming: folder).isEmpty }
        }
    }

    /// Chaos that does not end by itself within the test, and the folder that it works in.
    private func start(_ fixture: Fixture) async throws -> (ManagedProcess, URL) {
        let folder = try fixture.temporaryFolder()
        let chaos = try await fixture.process(
            program(named: "fleet-sim"), ["chaos", "--minutes", "5", "--seed", "8"],
            environment: ["TMPDIR": folder.path])
        return (chaos, folder)
    }

    /// Those whose arguments name something in a folder.
    private func processes(naming folder: URL) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.filter { name in
            guard Int(name) != nil, let data = FileManager.default.contents(atPath: "/proc/\(name)/cmdline") else {
                return false
            }
            return String(decoding: data, as: UTF8.self).contains(folder.path)
        }
    }

    @Test("one seed makes one plan, and every kind of fault comes in a plan that is long enough")
    func plan() {
        let plan = ChaosPlan(seed: 1, duration: 240_000, devices: 3, apps: 2)
        #expect(plan == ChaosPlan(seed: 1, duration: 240_000, devices: 3, apps: 2))
        #expect(plan != ChaosPlan(seed: 2, duration: 240_000, devices: 3, apps: 2))
        let kinds = Set(plan.steps.map(\.fault.kind))
        let parts = ["Broker", "Controller", "Agent", "App"]
        let expected =
            ["kill", "end", "stop"].flatMap { kind in parts.map { kind + $0 } }
            + ["reset", "refuse", "slow", "blackHole", "fullDiskAgent", "oldDatabase", "emptyDatabase", "restore"]
        #expect(kinds.isSuperset(of: expected), "\(Set(expected).subtracting(kinds))")
        #expect(plan.steps.allSatisfy { $0.at < 240_000 })
    }

    // MARK: The laws bite

    @Test("an app that was told an older document of the same layer went back; one of another layer is no step back")
    func stepBack() throws {
        let (first, second) = (config("c1.0", .all), config("c2.0", .all))
        let other = config("c3.0", .device(d1))
        let model = model([first, second, other], [(1, first), (2, second), (3, other)])
        #expect(model.problems == [])
        #expect(model.stepBack(in: heard(["c1.0", "c2.0", "c3.0", "c2.0"])) == nil)
        #expect(try #require(model.stepBack(in: heard(["c2.0", "c3.0", "c1.0"]))).0.contains("c1.0"))
        #expect(model.stepBack(in: heard(["c9.0"])) != nil)
        // Put in force again, the first is the newest.
        let again = self.model([first, second, first], [(1, first), (2, second), (3, first)])
        #expect(again.stepBack(in: heard(["c1.0", "c2.0", "c1.0"])) == nil)
        #expect(again.stepBack(in: heard(["c2.0", "c1.0", "c2.0"])) != nil)
    }

    @Test("a change that was answered and is not in the history, or is there after a refusal, is found")
    func answered() {
        let document = config("c1.0", .all)
        let result = JSONValue.object(["results": [.object(["changed": true, "revision": 1])]])
        var change = ChaosChange(number: 1, kind: .apply([document], isAgain: false), answer: .accepted(result))
        #expect(ChaosModel(changes: [change], history: [row(1, 1, document)]).problems == [])
        #expect(ChaosModel(changes: [change], history: []).problems.count == 1)
        #expect(ChaosModel(changes: [change], history: [row(1, 1, document), row(2, 1, document)]).problems.count == 1)
        change.answer = .refused("no")
        #expect(ChaosModel(changes: [change], history: [row(1, 1, document)]).problems.count == 1)
        #expect(ChaosModel(changes: [], history: [row(1, 1, document)]).problems.count == 1)
    }

    @Test("who was taken out of the fleet stands in the history, once")
    func removed() {
        var removal = ChaosRemoval(number: 1, device: DeviceID(unchecked: "d3"), isDone: true)
        let row = JSONValue.object([
            "revision": 1, "app": "_device", "target": "device/d3", "aspect": "removal", "why": "removal-1", "old": [],
        ])
        func problems(_ history: [JSONValue]) -> Int {
            ChaosModel(changes: [], removals: [removal], history: history).problems.count
        }
        #expect(problems([row]) == 0 && problems([]) == 1 && problems([row, row]) == 1)
        removal.isDone = false
        #expect(problems([row]) == 0 && problems([]) == 0 && problems([row, row]) == 1)
        #expect(ChaosModel(changes: [], history: [row]).problems.count == 1)
    }

    @Test("a device beats its groups, the higher priority another group, then the smaller id, and all comes last")
    func layers() {
        let groups: [GroupID: ChaosGroup] = [
            g(1): ChaosGroup(priority: 1, devices: [d1]),
            g(2): ChaosGroup(priority: 2, devices: [d1, DeviceID(unchecked: "d2")]),
            g(3): ChaosGroup(priority: 2, devices: [d1]), g(4): ChaosGroup(priority: 9, devices: []),
        ]
        #expect(
            ChaosModel.chain(of: d1, groups)
                == [.device(d1), .group(g(2)), .group(g(3)), .group(g(1)), .all])
    }

    @Test("a group that is not what was answered for is found; where no answer came, either will do")
    func groups() {
        let (one, two) = (ChaosGroup(priority: 1, devices: [d1]), ChaosGroup(priority: 2, devices: []))
        let known = ChaosChange(number: 1, kind: .group(g(1), one), answer: .accepted(nil))
        let unknown = ChaosChange(number: 2, kind: .group(g(1), two), answer: .unknown("late"))
        func list(_ group: ChaosGroup) -> [JSONValue] {
            let devices = JSONValue.array(group.devices.map { .string($0.text) })
            return [.object(["group": "g1", "priority": .integer(group.priority), "devices": devices])]
        }
        let certain = ChaosModel(changes: [known], history: [])
        #expect(certain.groupProblems(list(one)) == [])
        #expect(certain.groupProblems(list(two)).count == 1)
        #expect(certain.groupProblems([]).count == 1)
        let open = ChaosModel(changes: [known, unknown], history: [])
        #expect(open.groupProblems(list(one)) == [])
        #expect(open.groupProblems(list(two)) == [])
    }

    @Test("an app that is told of its retirement while its old key is there is found; a newer key is no proof")
    func keys() throws {
        let folder = FileManager.default.temporaryDirectory
        do {
            let key = folder.appendingPathComponent("chaos-\(UUID().uuidString).key")
            defer { try? FileManager.default.removeItem(at: key) }
            func told(_ states: String..., before: (Int) throws -> Void) rethrows -> ChaosTranscript {
                var transcript = ChaosTranscript(
                    of: AppID(unchecked: "a"), on: d1, output: "/dev/null", keyFile: key.path)
                for (index, state) in states.enumerated() {
                    try before(index)
                    transcript.take(.object(["event": "auth", "state": .string(state), "message": ""]), 0)
                }
                return transcript
            }
            try Data("key".utf8).write(to: key)
            let before = Date.now.addingTimeInterval(-60)
            try FileManager.default.setAttributes([.modificationDate: before], ofItemAtPath: key.path)
            let kept = told("authorized", "retired") { _ in }
            #expect(kept.violations.count == 1)
            let gone = try told("authorized", "retired") { index in
                if index == 1 { try FileManager.default.removeItem(at: key) }
            }
            #expect(gone.violations.isEmpty && gone.suspicion == nil)
            let released = try told("authorized", "retired", "authorized") { index in
                if index == 1 { try Data("new".utf8).write(to: key) }
            }
            #expect(released.violations.isEmpty && released.suspicion == nil)
            let unexplained = try told("authorized", "retired") { index in
                if index == 1 { try Data("newer".utf8).write(to: key) }
            }
            #expect(unexplained.suspicion != nil)
        }
    }

    private func config(_ tag: String, _ layer: Layer) -> ChaosChange.Document {
        ChaosChange.Document(
            key: ChaosChange.Key(app: AppID(unchecked: "a"), layer: layer, aspect: .config), tag: tag,
            value: .object(["tag": .string(tag)]))
    }

    private func heard(_ tags: [String]) -> [ChaosTranscript.Heard] {
        tags.map { ChaosTranscript.Heard(at: 0, policy: .config, tag: $0) }
    }

    private func row(_ revision: Int64, _ change: Int, _ document: ChaosChange.Document) -> JSONValue {
        .object([
            "revision": .integer(revision), "why": .string("chaos-\(change)"), "app": .string(document.key.app.text),
            "target": .string("\(document.key.layer)"), "aspect": .string(document.key.aspect.text),
            "new": document.value,
        ])
    }

    /// Changes 1, 2, 3… of one document each, and the revisions they were given.
    private func model(
        _ documents: [ChaosChange.Document], _ history: [(Int64, ChaosChange.Document)]
    ) -> ChaosModel {
        let changes = documents.enumerated().map { index, document in
            ChaosChange(number: index + 1, kind: .apply([document], isAgain: false), answer: .unknown(""))
        }
        return ChaosModel(
            changes: changes,
            history: history.enumerated().map { row($0.element.0, $0.offset + 1, $0.element.1) })
    }
}
