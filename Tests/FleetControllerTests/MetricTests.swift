import FleetHome
import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetController

@Suite("What Prometheus is told")
struct MetricTests {
    @Test("the numbers of fleetctl status, by app and policy")
    func status() throws {
        let world = try World()
        world.connect()
        let config = try world.apply(mail, "all", .config, #"{"values":{"a":"1"}}"#)
        let retired = try world.apply(mail, "device/till-2", .auth, #"{"state":"retired"}"#)
        for device in [till, till2] { world.online(device) }
        world.report(.fresh(till, mail, at: world.now).then(.config, from: .all, config, .error))
        let lines = try world.metrics()
        for policy in [Policy.config, .auth] {
            let counts = try world.counts(mail, policy).counts
            let name = #"fleetbus_device_apps{app="com.example.mail",policy="\#(policy.rawValue)",outcome="#
            #expect(lines.contains(#"\#(name)"applied"} \#(counts.applied)"#))
            #expect(lines.contains(#"\#(name)"error"} \#(counts.error)"#))
            #expect(lines.contains(#"\#(name)"pending"} \#(counts.pending)"#))
        }
        #expect(lines.contains(#"fleetbus_device_apps{app="com.example.mail",policy="config",outcome="error"} 1"#))
        #expect(!lines.contains { $0.hasPrefix("fleetbus_retirements") })
        #expect(lines.contains("fleetbus_revision \(retired)"))
        #expect(lines.contains("fleetbus_serving 1"))

        world.report(.fresh(till2, mail, at: world.now))
        world.pass(seconds: 400)
        let late = try world.metrics()
        #expect(late.contains(#"fleetbus_retirements{app="com.example.mail",state="outstanding"} 1"#))
        #expect(late.contains(#"fleetbus_retirements{app="com.example.mail",state="confirmed"} 0"#))
        #expect(late.contains(#"fleetbus_retirements{app="com.example.mail",state="doubtful"} 0"#))
        #expect(late.contains(#"fleetbus_device_apps_overdue{app="com.example.mail",policy="config"} 1"#))
        #expect(late.contains(#"fleetbus_device_apps_offline{app="com.example.mail",policy="config"} 0"#))
    }

    @Test("how many devices are connected, are warned of, and have lost events")
    func devices() throws {
        let world = try World()
        world.connect()
        let connection = RandomID.random()
        world.online(till, connection: connection)
        world.online(till2)
        #expect(try world.metrics().contains(#"fleetbus_devices{state="online"} 2"#))
        world.offline(till, connection: connection)
        world.event(till2, mail, number: 5, oldest: 5)
        let lines = try world.metrics()
        #expect(lines.contains(#"fleetbus_devices{state="online"} 1"#))
        #expect(lines.contains(#"fleetbus_devices{state="offline"} 1"#))
        #expect(lines.contains(#"fleetbus_devices{state="unknown"} 0"#))
        #expect(lines.contains("fleetbus_events_lost 4"))
        #expect(lines.contains("fleetbus_devices_warned 1"))
        // Whatever a device says that it has lost.
        for boot in 2...1_030 as ClosedRange<Int64> {
            world.event(till2, mail, number: 1 << 53 - 1, oldest: 1 << 53 - 1, boot: boot)
        }
        #expect(try world.metrics().contains("fleetbus_events_lost 9000000000000000000"))
    }

    @Test("a family is written once with its help, its labels as they must be, and not at all without samples")
    func text() {
        var metric = Metric("apps", "Apps.")
        #expect([metric].text == "")
        metric.add(1, ["app": #"a"\b"# + "\n"])
        metric.add(2, ["app": "c", "policy": "d"])
        let seconds = Metric("seconds_total", "Time.", kind: .counter, 1.5)
        #expect(
            [metric, seconds].text == #"""
                # HELP apps Apps.
                # TYPE apps gauge
                apps{app="a\"\\b\n"} 1
                apps{app="c",policy="d"} 2
                # HELP seconds_total Time.
                # TYPE seconds_total counter
                seconds_total 1.5

                """#)
    }

    @Test(
        "a port, or a loopback address and a port, is a place for them",
        arguments: [
            ("9464", "127.0.0.1:9464"), ("127.0.0.1:9464", "127.0.0.1:9464"), ("127.8.0.1:1", "127.8.0.1:1"),
            ("localhost:80", "127.0.0.1:80"), ("[::1]:9464", "[::1]:9464"), ("0", "127.0.0.1:0"),
        ])
    func addresses(text: String, address: String) throws {
        #expect(try MetricsAddress(text).description == address)
    }

    @Test(
        "another machine's, or none, is refused, and said what is expected",
        arguments: [
            "", ":", "::", "x", "-1", "65536", "127.0.0.1", "127.0.0.1:", "0.0.0.0:9464", "10.0.0.1:9464", "[::]:9464",
            "::1:9464", "127.0.0.1.5:9464", "127.0.1:9464", "127.0.0.256:9464", "localhost", "example.com:9464",
            "9464 ",
        ])
    func noAddresses(text: String) {
        let error = #expect(throws: FleetControllerError.self) { try MetricsAddress(text) }
        #expect(error?.message.contains("'\(text)' is no place for metrics: expected a port") == true)
    }

    @Test("they are served over HTTP to whoever shows the token of the fleet's folder, and to nobody else")
    func served() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            let place = try MetricsAddress("\(freePort())")
            try await fleet.withController(metricsAddress: place) {
                let token = try fleet.home.metricsToken()
                let mode = try FileManager.default.attributesOfItem(atPath: fleet.home.metricsTokenPath)[
                    .posixPermissions]
                #expect(mode as? Int == 0o600)
                try await until("the controller serves") {
                    guard accepts(port: UInt16(place.port)) else { return false }
                    return try await Self.ask(place, "GET /metrics", token).contains("fleetbus_serving 1")
                }
                let lines = try await Self.ask(place, "GET /metrics", token)
                #expect(lines.first == "HTTP/1.1 200 OK")
                #expect(lines.contains("content-type: text/plain; version=0.0.4; charset=utf-8"))
                #expect(lines.contains { $0.hasPrefix("process_resident_memory_bytes ") })
                #expect(lines.contains { $0.hasPrefix("fleetbus_database_bytes ") })

                for shown in [nil, "", "x", token + "x", String(token.dropLast()), String(token.reversed())] {
                    let lines = try await Self.ask(place, "GET /metrics", shown)
                    #expect(lines.first == "HTTP/1.1 401 Unauthorized")
                    #expect(lines.contains("www-authenticate: Bearer"))
                    #expect(!lines.contains { $0.contains("fleetbus") || $0.contains(token) })
                }
                #expect(try await Self.ask(place, "GET /", token).first == "HTTP/1.1 404 Not Found")
                #expect(try await Self.ask(place, "GET /metrics?x=1", token).first == "HTTP/1.1 200 OK")
                #expect(try await Self.ask(place, "DELETE /metrics", token).first == "HTTP/1.1 405 Method Not Allowed")
                let head = try await Self.ask(place, "HEAD /metrics", token)
                #expect(head.first == "HTTP/1.1 200 OK" && head.last == "")
            }
            // Another program may have the port by now.
            let after = try? await Self.ask(place, "GET /metrics", "x")
            #expect(after?.first?.hasPrefix("HTTP") != true)
        }
    }

    @Test("nonsense, and those who connect and say nothing, keep nobody from being answered")
    func nonsense() async throws {
        let server = try await MetricsServer(at: MetricsAddress("0"), token: "token", patience: .seconds(1)) {
            [Metric("one", "One.", 1)]
        }
        let place = try #require(server.address)
        try await withFixture { fixture in
            let serving = Task { try await server.run() }  // ended below
            fixture.onEnd { serving.cancel() }
            for _ in 0..<100 {
                _ = try await fixture.process(
                    Self.shell, ["-c", "exec 3<>/dev/tcp/127.0.0.1/$0; exec sleep 600", "\(place.port)"])
            }
            for text in [#"\0\0\0"#, "GET", #"GET /metrics HTTP/9.9\r\n\r\n"#, #"A: b\r\n\r\n"#, ""] {
                let lines = try await Self.say(text, to: place)
                #expect(lines.first.map { $0.isEmpty || $0.hasPrefix("HTTP/1.1 4") } ?? true, "\(text): \(lines)")
            }
            try await until("it is answered") { try await Self.ask(place, "GET /metrics", "token").last == "one 1" }
        }
    }

    @Test("a long answer comes whole, also to a slow reader")
    func long() async throws {
        var metric = Metric("many", "Many.")
        // More than the kernel takes for a reader who waits.
        for _ in 0..<200 { metric.add(1, ["text": String(repeating: "x", count: 100_000)]) }
        metric.add(1, ["text": "end"])
        let long = metric
        let server = try await MetricsServer(at: MetricsAddress("0"), token: "token", patience: .seconds(600)) {
            [long]
        }
        let place = try #require(server.address)
        try await withFixture { fixture in
            let serving = Task { try await server.run() }  // ended below
            fixture.onEnd { serving.cancel() }
            let request = #"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token\r\n\r\n"#
            let script = #"exec 3<>/dev/tcp/127.0.0.1/$0; printf '%b' "$1" >&3; sleep 1; tail -n 1 <&3"#
            let answer = try await run(Self.shell, ["-c", script, "\(place.port)", request])
            #expect(answer.output == #"many{text="end"} 1"#)
        }
    }

    @Test("a controller ends as it should while others are connected, answered or not")
    func ends() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            let place = try MetricsAddress("\(freePort())")
            try await fleet.withController(metricsAddress: place) {
                try await until("the controller listens") { accepts(port: UInt16(place.port)) }
                for _ in 0..<30 {
                    let process = try await fixture.process(
                        Self.shell,
                        ["-c", "exec 3<>/dev/tcp/127.0.0.1/$0; echo connected; exec sleep 600", "\(place.port)"])
                    for await _ in process.lines { break }
                }
            }
            try await until("nobody listens") { !accepts(port: UInt16(place.port)) }
        }
    }

    @Test("a port that is taken, and a token that is none or that others can read, end the controller with a message")
    func refused() async throws {
        try await withFixture { fixture in
            let fleet = try await Fleet(fixture)
            func message(at port: UInt16) async -> String? {
                let place = MetricsAddress(host: "127.0.0.1", port: Int(port))
                // A program that another test starts has the lock of the last one until it is loaded.
                try? await until("the lock is free") { try !fleet.home.isControllerRunning() }
                let service = ControllerService(home: fleet.home, metricsAddress: place, logger: Fleet.logger)
                let error = await #expect(throws: (any Error).self) {
                    try await within { try await service.run() }
                }
                return error.map { "\($0)" }
            }
            let taken = try #require(await message(at: fleet.home.context.port))
            #expect(taken.contains("metrics cannot be served at 127.0.0.1:\(fleet.home.context.port)"))
            let path = fleet.home.metricsTokenPath
            chmod(path, 0o644)
            let open = try await message(at: freePort())
            #expect(open?.contains("\(path) can be read by others") == true, "\(open ?? "no error")")
            try Data("short\n".utf8).write(to: URL(fileURLWithPath: path))
            chmod(path, 0o600)
            let short = try await message(at: freePort())
            #expect(short?.contains("\(path) holds no token") == true, "\(short ?? "no error")")
        }
    }

    // MARK: Asking

    private static let shell = URL(fileURLWithPath: "/bin/bash")

    /// The lines of an answer.
    private static func ask(_ place: MetricsAddress, _ request: String, _ token: String?) async throws -> [String] {
        let shown = token.map { #"Authorization: Bearer \#($0)\r\n"# } ?? ""
        return try await say(#"\#(request) HTTP/1.1\r\nHost: x\r\n\#(shown)\r\n"#, to: place)
    }

    /// What comes back for a text with escapes, until the connection ends.
    private static func say(_ text: String, to place: MetricsAddress) async throws -> [String] {
        let script = #"exec 3<>/dev/tcp/127.0.0.1/$0 || exit 7; printf '%b' "$1" >&3; cat <&3"#
        let answer = try await run(shell, ["-c", script, "\(place.port)", text])
        guard answer.status != 7 else { throw TestFailure("nobody listens at \(place)") }
        // To Swift, CR and LF are one character.
        return answer.output.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { String($0) }
    }
}

extension World {
    /// The lines that Prometheus would get.
    fileprivate func metrics() throws -> [String] {
        try core.metrics(at: now).text.split(separator: "\n").map { String($0) }
    }
}
