import Foundation
import Mosquitto
import TestSupport
import Testing

@Suite("Encrypted connections")
struct TLSTests {
    @Test("a client with a certificate connects, by number and by name, and is known by its common name")
    func roundTrip() async throws {
        try await withFixture { fixture in
            let files = try await Certificates(in: fixture.temporaryFolder())
            let broker = try await fixture.broker(files.listener + ["use_identity_as_username true"], anonymous: false)
            let loop = try fixture.loop()
            for host in ["127.0.0.1", "localhost"] {
                let client = try fixture.client("tls", of: broker, on: loop) {
                    $0.host = host
                    $0.tls = files.client
                }
                client.start()
                try await reach(client, "connected to \(host)") { if case .connected = $0 { true } else { false } }
                try await client.subscribe(to: ["a/#"])
                let large = [UInt8](repeating: 7, count: 300_000)
                try await client.publish(large, to: "a/large")
                for number in 0..<200 { try await client.publish("\(number)", to: "a/\(number)") }
                let messages = try await collect(201, from: client)
                #expect(messages.first?.payload == large)
                #expect(messages.dropFirst().map(\.text) == (0..<200).map(String.init))
                await client.close()
            }
            #expect(broker.log.contains("u'till-0042'"))
        }
    }

    @Test("back-pressure holds for encrypted connections, where bytes may wait inside the TLS library")
    func backPressure() async throws {
        try await withFixture { fixture in
            let files = try await Certificates(in: fixture.temporaryFolder())
            let broker = try await fixture.broker(files.listener)
            let loop = try fixture.loop()
            let reader = try fixture.client("reader", of: broker, on: loop, messageBuffer: 8) { $0.tls = files.client }
            try await reader.connect()
            try await reader.subscribe(to: ["n/#"])
            let writer = try fixture.client("writer", of: broker, on: loop) { $0.tls = files.client }
            try await writer.connect()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<2000 { group.addTask { try await writer.publish("x", to: "n/\(number)") } }
                try await group.waitForAll()
            }
            #expect(Set(try await collect(2000, from: reader).map(\.topic)).count == 2000)
        }
    }

    @Test("a broker that another authority vouches for is refused, with the reason")
    func wrongAuthority() async throws {
        try await withFixture { fixture in
            let files = try await Certificates(in: fixture.temporaryFolder())
            let others = try await Certificates(in: fixture.temporaryFolder())
            let broker = try await fixture.broker(files.listener)
            let client = try fixture.client("wary", of: broker, on: fixture.loop()) {
                $0.tls = ClientOptions.TLS(authorityFile: others.authority)
            }
            let error = try await #require(throws: MosquittoError.self) { try await client.connect() }
            #expect(error.code == .tls)
            #expect(error.message.contains("certificate verify failed"), "\(error)")
        }
    }

    @Test("a broker whose certificate is for another host is refused")
    func wrongHost() async throws {
        try await withFixture { fixture in
            let files = try await Certificates(in: fixture.temporaryFolder(), names: "DNS:elsewhere.example")
            let broker = try await fixture.broker(files.listener)
            let client = try fixture.client("wary", of: broker, on: fixture.loop()) { $0.tls = files.client }
            let error = try await #require(throws: MosquittoError.self) { try await client.connect() }
            #expect(error.code == .tls, "\(error)")
        }
    }

    @Test("a broker that is not there is refused at once, as without TLS, and costs no processor time")
    func nobody() async throws {
        try await withFixture { fixture in
            let files = try await Certificates(in: fixture.temporaryFolder())
            let broker = try await fixture.broker(files.listener)
            await broker.kill()
            for host in ["127.0.0.1", "localhost"] {
                let client = try fixture.client("early", of: broker, on: fixture.loop()) {
                    ($0.tls, $0.host) = (files.client, host)
                }
                let error = try await #require(throws: MosquittoError.self) { try await client.connect() }
                #expect(error.code == .connectionFailed)
                #expect(error.message == "connecting to \(host):\(broker.port): Connection refused")
            }
        }
    }

    @Test("a missing file is named as such, and does not stop other clients")
    func missingFile() async throws {
        try await withFixture { fixture in
            let files = try await Certificates(in: fixture.temporaryFolder())
            let broker = try await fixture.broker(files.listener)
            let loop = try fixture.loop()
            let client = try fixture.client("careless", of: broker, on: loop) {
                $0.tls = ClientOptions.TLS(authorityFile: "/nowhere/ca.crt")
            }
            let error = try await #require(throws: MosquittoError.self) { try await client.connect() }
            #expect(error.code == .tls, "\(error)")
            #expect(error.message.contains("/nowhere/ca.crt"), "\(error)")
            let other = try fixture.client("careful", of: broker, on: loop) { $0.tls = files.client }
            try await other.connect()
        }
    }
}

/// An authority, a broker's certificate and a client's.
struct Certificates {
    let folder: URL
    var authority: String { folder.path + "/ca.crt" }

    init(in folder: URL, names: String = "DNS:localhost,IP:127.0.0.1") async throws {
        self.folder = folder
        try await openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=authority")
        for (name, subject, extensions) in [
            ("broker", "broker", "subjectAltName=\(names)"), ("client", "till-0042", "extendedKeyUsage=clientAuth"),
        ] {
            try await openssl("req -newkey rsa:2048 -nodes -keyout \(name).key -out \(name).csr -subj /CN=\(subject)")
            try extensions.write(to: folder.appendingPathComponent("\(name).ext"), atomically: true, encoding: .utf8)
            try await openssl(
                "x509 -req -in \(name).csr -CA ca.crt -CAkey ca.key -CAcreateserial -out \(name).crt -days 2 "
                    + "-extfile \(name).ext")
        }
    }

    var listener: [String] {
        [
            "cafile \(authority)", "certfile \(folder.path)/broker.crt", "keyfile \(folder.path)/broker.key",
            "require_certificate true",
        ]
    }

    var client: ClientOptions.TLS {
        ClientOptions.TLS(
            authorityFile: authority, certificateFile: folder.path + "/client.crt", keyFile: folder.path + "/client.key"
        )
    }

    private func openssl(_ arguments: String) async throws {
        let result = try await run(
            program(named: "openssl"), arguments.split(separator: " ").map(String.init), in: folder)
        guard result.status == 0 else { throw TestFailure("openssl \(arguments): \(result.errors)") }
    }
}
