import FleetProtocol
import Foundation
import Mosquitto
import Synchronization
import TestSupport
import Testing

@testable import FleetSimulator

@Suite("The bench")
struct BenchTests {
    @Test("converge counts every status, beside both floors, and says on what it was measured")
    func converge() async throws {
        try await withFixture { fixture in
            let report = try await bench(fixture, ["converge", "--devices", "30", "--rounds", "2"])
            #expect(report["scenario"]?.stringValue == "converge")
            #expect(report["parameters"]?["devices"] == 30)
            for name in ["lost", "duplicated", "reordered"] { #expect(report[name] == 0, "\(name)") }
            let ours = try #require(number(report["result"]?["medianMs"]))
            for (kind, ratio) in [("bare", "bare"), ("equalBytes", "equalBytes")] {
                let floor = try #require(number(report["floor"]?[kind]?["medianMs"]))
                let stated = try #require(number(report["ratio"]?[ratio]))
                #expect(ours > 0 && floor > 0)
                #expect(abs(stated - ours / floor) < 0.02 * stated)
                // A message in, a reply out: no process can do with less than one call for each.
                let calls = report["floor"]?[kind]?["perAcknowledgement"]?["simulator"]
                #expect(try #require(number(calls?["reads"])) >= 1)
                #expect(try #require(number(calls?["writes"])) >= 1)
            }
            for process in ["broker", "simulator", "controller"] {
                let usage = report["result"]?["perAcknowledgement"]?[process]
                #expect(try #require(number(usage?["cpuMicroseconds"])) > 0, "\(process)")
                let calls = report["result"]?["callsPerAcknowledgement"]?[process]
                #expect(try #require(number(calls)) > 1, "\(process)")
            }
            let machine = try #require(report["machine"])
            for name in ["processor", "kernel", "build"] { #expect(machine[name]?.stringValue?.isEmpty == false) }
            for name in ["mosquitto", "libmosquitto", "sqlite", "swift"] {
                #expect(machine["versions"]?[name]?.stringValue?.first?.isNumber == true, "\(name)")
            }
            #expect(machine["broker"]?.arrayValue?.contains("set_tcp_nodelay true") == true)
            #expect(try ConvergeResult(report)?.ours == ours)
        }
    }

    @Test("a bench that cannot start its controller says which program is missing")
    func missing() async throws {
        try await withTemporaryFolder { folder in
            let alone = folder.appendingPathComponent("fleet-sim")
            try FileManager.default.copyItem(at: program(named: "fleet-sim"), to: alone)
            let ended = try await run(
                alone, ["bench", "sustained", "--devices", "1"], environment: ["PATH": "/usr/sbin:/usr/bin:/bin"])
            #expect(ended.status != 0)
            #expect(ended.errors.contains("fleet-controller was found neither beside fleet-sim"))
        }
    }

    @Test("a fleet whose broker was killed converges again, and nothing is lost")
    func storm() async throws {
        try await withFixture { fixture in
            let report = try await bench(fixture, ["storm", "--devices", "20", "--connect-rate", "40"])
            for name in ["lost", "duplicated", "reordered"] { #expect(report[name] == 0, "\(name)") }
            #expect(try #require(number(report["result"]?["seconds"])) > 0)
            #expect(try #require(number(report["floor"]?["equalBytes"]?["seconds"])) > 0)
        }
    }

    @Test("single devices are changed at a rate, and each latency counts from when the change was due")
    func paced() async throws {
        try await withFixture { fixture in
            // As many devices as changes: however slow all is, there is one that has nothing under way.
            let report = try await bench(
                fixture, ["paced", "--devices", "50", "--rounds", "1", "--seconds", "1", "--rate", "50"])
            for name in ["lost", "duplicated", "reordered"] { #expect(report[name] == 0, "\(name)") }
            #expect(report["result"]?["requestToStatusMs"]?["count"] == 50)
            #expect(report["floor"]?["bare"]?["latencyMs"]?["count"] == 50)
            #expect(report["result"]?["refused"] == 0)
        }
    }

    @Test("too many system calls for each acknowledgement are said, also where nothing else is wrong")
    func bounds() {
        func report(_ calls: Double, _ scenario: String = "converge") -> BenchReport {
            BenchReport(
                scenario: scenario, parameters: .null,
                result: .object(["callsPerAcknowledgement": .object(["simulator": .double(calls)])]))
        }
        #expect(BenchSmoke.broken(report(6)).isEmpty)
        #expect(BenchSmoke.broken(report(13)).count == 1)
        #expect(BenchSmoke.broken(report(13, "decode")).isEmpty)
        var wrong = report(6)
        #expect(!wrong.isWrong)
        wrong.reordered = 1
        #expect(wrong.isWrong)
    }

    @Test("a rate's times are due one interval after the other, whatever their work takes")
    func pacer() async {
        let times = TimeRecord()
        await Pacer(rate: 1_000, duration: .milliseconds(50)).run { times.add($0) }
        let all = times.all
        #expect(all.count == 50)
        #expect(zip(all, all.dropFirst()).allSatisfy { (999_000...1_001_000).contains($1 - $0) })
    }

    @Test("the equal-bytes floor has as many filters as a device, and messages of its size")
    func equalBytes() throws {
        let traffic = try FloorTraffic(.equalBytes, apps: 3)
        #expect(traffic.filters(of: 0).map(\.count) == [7, 6])
        #expect(traffic.reply(of: 0, app: 1) == "fleet/v1/bench/reply/sim-000001/sim.app1/status")
        let samples = try WireSamples()
        #expect(traffic.replySize == samples.status.wire.count)
        #expect(traffic.requestSize == samples.signed.wire.count)
        #expect(try FloorTraffic(.bare, apps: 3).filters(of: 0).map(\.count) == [3])
    }

    @Test("a floor greets everybody, also when more are there than may be answered at once")
    func greetings() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker(["max_queued_messages 100000"])
            let traffic = try FloorTraffic(.equalBytes, apps: 1)
            let devices = 3_000
            let loop = try EventLoop(name: "devices")
            fixture.onEnd { await loop.shutdown() }
            let options = ClientOptions(host: broker.host, port: broker.port, clientID: "devices")
            let client = try MQTTClient(options, on: loop)
            fixture.onEnd { await client.close() }
            try await client.connect()
            try await client.subscribe(to: [traffic.prefix + "control/hello/+"], qos: .atMostOnce)
            for index in 0..<devices {
                try await client.publish("online", to: traffic.presence(of: index), retain: true)
            }
            let driver = try FloorDriver(traffic, devices: devices)
            fixture.onEnd { await driver.end() }
            try await driver.connect(port: broker.port)
            let greeted = try await within("every hello") {
                var topics: Set<String> = []
                for try await message in client.messages {
                    topics.insert(message.topic)
                    if topics.count == devices { break }
                }
                return topics
            }
            #expect(greeted == Set((0..<devices).map(traffic.hello(to:))))
        }
    }

    private func number(_ value: JSONValue?) -> Double? {
        switch value {
        case .double(let number): number
        case .integer(let number): Double(number)
        default: nil
        }
    }

    private func bench(_ fixture: Fixture, _ arguments: [String]) async throws -> JSONValue {
        let process = try await fixture.process(program(named: "fleet-sim"), ["bench"] + arguments + ["-o", "json"])
        var text = ""
        for await line in process.lines { text += line }
        let status = await process.exited()
        guard status == 0 else { throw TestFailure("fleet-sim ended with \(status): \(process.errors)") }
        return try JSONValue(json: Array(text.utf8), limit: text.utf8.count)
    }
}

private final class TimeRecord: Sendable {
    private let times = Mutex<[UInt64]>([])
    var all: [UInt64] { times.withLock { $0 } }
    func add(_ time: UInt64) { times.withLock { $0.append(time) } }
}
