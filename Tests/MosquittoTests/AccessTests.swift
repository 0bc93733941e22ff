import Foundation
import Mosquitto
import TestSupport
import Testing

@Suite("Who may do what")
struct AccessTests {
    @Test("a publish that the broker's ACL denies returns the reason, and the connection stands")
    func deniedPublish() async throws {
        try await withFixture { fixture in
            let acl = try fixture.temporaryFolder().appendingPathComponent("acl")
            try "topic write open/#\n".write(to: acl, atomically: true, encoding: .utf8)
            let broker = try await fixture.broker(["acl_file \(acl.path)"])
            let client = try fixture.client("denied", of: broker, on: fixture.loop())
            try await client.connect()
            let reason = try await client.publish("x", to: "secret/a")
            #expect(reason == .notAuthorized)
            #expect(reason.isError)
            #expect(try await client.publish("x", to: "open/a") == .noMatchingSubscribers)
            #expect(client.state == .connected(number: 1))
        }
    }

    @Test("a wrong password is shown as the cause, without the password, and tried again until it is right")
    func wrongPassword() async throws {
        try await withFixture { fixture in
            let folder = try fixture.temporaryFolder()
            let file = folder.appendingPathComponent("passwords")
            try await setPassword("other-secret", of: "ann", in: file)
            let broker = try await fixture.broker(["password_file \(file.path)"], anonymous: false)
            let client = try fixture.client("ann", of: broker, on: fixture.loop()) {
                $0.userName = "ann"
                $0.password = Password(Array("s3cret-word".utf8))
            }
            let error = try await #require(throws: MosquittoError.self) { try await client.connect() }
            #expect(error.code == .authenticationRefused)
            #expect(error.reason == .notAuthorized)
            #expect(error.message.contains("127.0.0.1:\(broker.port)"))
            try await reach(client, "a refusal among the states") {
                if case .waiting(_, let cause) = $0 { cause.code == .authenticationRefused } else { false }
            }
            for text in ["\(error)", "\(client.state)", "\(client.options)", String(reflecting: client.options)] {
                #expect(!text.contains("s3cret-word"))
            }
            var dumped = ""
            dump(client.options, to: &dumped)
            #expect(!dumped.contains("115"))  // the first byte
            #expect(dumped.contains("redacted"))

            try await setPassword("s3cret-word", of: "ann", in: file)
            broker.reload()
            try await reach(client, "accepted in the end") { if case .connected = $0 { true } else { false } }
        }
    }

    private func setPassword(_ password: String, of user: String, in file: URL) async throws {
        let result = try await run(program(named: "mosquitto_passwd"), ["-b", "-c", file.path, user, password])
        try #require(result.status == 0, "\(result.errors)")
    }

    @Test("a filter that the broker refuses is named, and the others stand")
    func refusedFilter() async throws {
        try await withFixture { fixture in
            let broker = try await fixture.broker(
                try dynamicSecurity(in: fixture.temporaryFolder()), anonymous: true)
            let client = try fixture.client("subscriber", of: broker, on: fixture.loop())
            try await client.connect()
            let error = try await #require(throws: MosquittoError.self) {
                try await client.subscribe(to: ["allowed/#", "forbidden/#"])
            }
            #expect(error.code == .subscriptionRefused)
            #expect(error.reason == .notAuthorized)
            #expect(error.message.contains("forbidden/#"))
            #expect(!error.message.contains("allowed/#"))
            try await client.publish("x", to: "allowed/a")
            #expect(try await collect(1, from: client).map(\.topic) == ["allowed/a"])
        }
    }

    /// The lines for Debian's dynamic-security plugin, which grants anonymous clients `allowed/#` alone.
    private func dynamicSecurity(in folder: URL) throws -> [String] {
        let libraries = try FileManager.default.contentsOfDirectory(atPath: "/usr/lib")
            .map { "/usr/lib/\($0)/mosquitto_dynamic_security.so" }
        let plugin = try #require(
            libraries.first { FileManager.default.fileExists(atPath: $0) },
            "the dynamic-security plugin of Debian's mosquitto is missing: run deploy/test")
        let file = folder.appendingPathComponent("dynamic-security.json")
        let text = """
            {"defaultACLAccess":{"publishClientSend":true,"publishClientReceive":true,"subscribe":false,"unsubscribe":true},
             "clients":[],"groups":[{"groupname":"anonymous","roles":[{"rolename":"reader","priority":1}]}],
             "roles":[{"rolename":"reader","acls":[{"acltype":"subscribePattern","topic":"allowed/#","priority":1,"allow":true}]}],
             "anonymousGroup":"anonymous"}
            """
        try text.write(to: file, atomically: true, encoding: .utf8)
        return ["plugin \(plugin)", "plugin_opt_config_file \(file.path)"]
    }
}
