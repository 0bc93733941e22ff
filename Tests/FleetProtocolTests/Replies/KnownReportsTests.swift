import Testing

@testable import FleetProtocol

@Suite("What statuses repeat")
struct KnownReportsTests {
    private let device = DeviceID(unchecked: "till-0042")
    private let app = AppID(unchecked: "com.example.mail")
    private let fleet = FleetID(unchecked: "demo")

    /// Reads with what was read before in mind, and without: it must make no difference, nor to what is wrong.
    private func read(_ wire: [UInt8], _ known: inout KnownReports) -> (known: String, alone: String) {
        func said(_ body: () throws -> Status) -> String {
            do { return "\(try body())" } catch { return "\(error)" }
        }
        return (
            said { try Status(wire: wire, device: device, app: app, known: &known) },
            said { try Status(wire: wire, fleet: fleet, device: device, app: app) }
        )
    }

    @Test("a status is read alike whether others have said the same or not, also when it is broken")
    func alike() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("known reports with seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        var known = KnownReports(in: fleet)
        let pool = try (0..<6).map { _ in try generator.status() }
        for _ in 0..<400 {
            var status = try generator.pick(pool)
            status.device = device
            status.app = app
            status.fleet = fleet
            for index in status.policies.indices {
                status.policies[index] = try generator.pick(pool).policies[index]
                status.policies[index].attempt.at = generator.time()
            }
            let (fresh, alone) = read(status.wire, &known)
            if fresh != alone { Issue.record("\(fresh)\n\(alone)\nseed \(seed)") }
            let broken = JSONFuzzTests.mutate(status.wire, &generator)
            let (brokenFresh, brokenAlone) = read(broken, &known)
            if brokenFresh != brokenAlone { Issue.record("\(brokenFresh)\n\(brokenAlone)\nseed \(seed)") }
        }
    }

    @Test(
        "a time that stands elsewhere than one's own reports have it is not taken for theirs",
        arguments: [
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"T","message":"T"}}"#,
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"T","x":{"at":"T"}}}"#,
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"T","at":"T"}}"#,
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"T"},"x":{"at":"T"}}"#,
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"T"},"received":2}"#,
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"T" } }"#,
            #"{"source":"default","received":1,"attempt":{"revision":1,"outcome":"applied","at":"never"}}"#,
        ])
    func elsewhere(_ report: String) throws {
        var generator = SeededGenerator(seed: 17)
        var status = try generator.status()
        (status.device, status.app, status.fleet) = (device, app, fleet)
        let own = PolicyReport(
            source: nil, received: 1, applied: nil,
            attempt: PolicyReport.Attempt(revision: 1, outcome: .applied, at: Timestamp(milliseconds: 0)))
        status.policies[Policy.auth.index] = own
        var writer = JSONWriter()
        own.write(to: &writer, in: fleet)
        let wire = String(decoding: status.wire, as: UTF8.self)
        let ownText = #""auth":"# + String(decoding: writer.bytes, as: UTF8.self)
        #expect(wire.contains(ownText))
        var known = KnownReports(in: fleet)
        let pieces = report.split(separator: #""T""#, omittingEmptySubsequences: false)
        let others = (1...3).map { month in
            // All but the last time stay as they are.
            pieces.dropFirst().enumerated().reduce(String(pieces[0])) {
                let isLast = $1.offset == pieces.count - 2
                return $0 + "\"2026-0\(isLast ? month : 1)-01T00:00:00.000Z\"" + $1.element
            }
        }
        for wire in (others + others).map({ wire.replacing(ownText, with: #""auth":"# + $0) }) + [wire, wire] {
            let (fresh, alone) = read(Array(wire.utf8), &known)
            #expect(fresh == alone)
        }
    }
}
