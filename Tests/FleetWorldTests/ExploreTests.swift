import TestSupport
import Testing

@testable import FleetWorld

@Suite("The protocol, explored by schedules of failures")
struct ExploreTests {
    @Test("schedules of fresh seeds keep every promise")
    func fresh() throws {
        let seed = UInt64.random(in: 0..<(1 << 52))
        print("explore: fresh seeds from \(seed)")
        let (failed, ran) = try Explorer().explore(seed: seed, count: 300, threads: 2, within: .seconds(8))
        #expect(failed.isEmpty, "replay with: fleet-sim explore --seed \(failed.first?.seed ?? 0) --shrink")
        #expect(ran > 0)
    }

    @Test("one seed tells one story, word for word")
    func same() throws {
        let explorer = try Explorer()
        for seed: UInt64 in [3, 64, 345] {
            let first = try explorer.run(Schedule(seed: seed)).story
            let second = try explorer.run(Schedule(seed: seed)).story
            #expect(first == second)
            #expect(first.count > 20)
        }
    }

    @Test("and the same one in each process, whose hashes are others")
    func sameElsewhere() async throws {
        try await withFixture { fixture in
            var stories: Set<String> = []
            for _ in 0..<4 {
                let process = try await fixture.process(program(named: "fleet-sim"), ["explore", "--seed", "7"])
                var story = ""
                for await line in process.lines { story += line + "\n" }
                #expect(await process.exited() == 0, "\(process.errors)")
                stories.insert(story)
            }
            #expect(stories.count == 1 && stories.first?.hasSuffix("keeps every promise\n") == true)
        }
    }

    @Test("what once broke a promise keeps it", arguments: KeptSchedule.all)
    func kept(_ kept: KeptSchedule) throws {
        let (violation, _) = try Explorer().run(kept.schedule)
        #expect(violation == nil, "\(kept.what)")
    }

    @Test("a world that has run is let go, whatever its clients and connections know of each other")
    func letGo() throws {
        let workshop = try Workshop(SimulatedFleet())
        for seed: UInt64 in 1...4 {
            weak var machine: Machine?
            weak var controller: Controller?
            weak var person: Operator?
            do {
                let world = try World(Schedule(seed: seed), workshop)
                _ = world.run()
                (machine, controller, person) = (world.machines.first, world.controller, world.operators.first)
                #expect(machine != nil && controller != nil && person != nil)
            }
            #expect(machine == nil && controller == nil && person == nil)
        }
    }

    @Test("what is visited is counted, and what is not is named")
    func coverage() throws {
        let coverage = Coverage()
        let none = coverage.unvisited
        try _ = Explorer().explore(seed: 1, count: 24, coverage: coverage)
        #expect(!none.isEmpty && coverage.unvisited.count < none.count / 2)
        #expect(coverage.unvisited.allSatisfy(none.contains))
        #expect(!coverage.unvisited.contains { $0.hasPrefix("device store") && $0.contains("document") })
        #expect(coverage.lines.contains { $0.hasPrefix("device event: register · certain: ") })
    }

    @Test("a broken promise is told by a short schedule")
    func shrinks() throws {
        let explorer = try Explorer(fault: .tombstonesIgnored)
        let failed = try explorer.explore(seed: FaultTests.seeds[.tombstonesIgnored] ?? 0, count: 300, limit: 1).failed
        let failure = try #require(failed.first)
        let finding = try explorer.shrink(Schedule(seed: failure.seed), failure.violation)
        #expect(finding.violation.law == failure.violation.law)
        #expect(finding.schedule.steps.count <= 5)
        #expect(finding.story.suffix(5).contains { $0.contains("broken") })
    }
}
