import DeviceAgent
import FleetProtocol
import Foundation
import TestSupport
import Testing

@Suite("An agent that cannot start says why")
struct AgentStartTests {
    @Test(
        "a member of agent.json that is missing or of the wrong type is named with its file",
        arguments: [
            "v", "device", "fleet", "fleetUUID", "incarnation", "broker", "rootKey", "trust", "epoch", "credentials",
        ])
    func member(name: String) async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: 1)
            for wrong in [nil, "[[]]"] {
                agent.members[name] = wrong
                try agent.write()
                let error = #expect(throws: DeviceAgentError.self) {
                    try AgentConfiguration.read(agent.configuration.path)
                }
                #expect(error?.description.contains(agent.configuration.path) == true, "\(error?.description ?? "")")
                #expect(error?.description.contains(name) == true, "\(error?.description ?? "")")
            }
        }
    }

    @Test("optional members of a wrong type are named too", arguments: ["state", "apps", "socket", "floors"])
    func optionalMember(name: String) async throws {
        try await withFixture { fixture in
            var agent = try AgentFolder(fixture, fleet: TestFleet(), port: 1)
            agent.members[name] = "7"
            try agent.write()
            let error = #expect(throws: DeviceAgentError.self) {
                try AgentConfiguration.read(agent.configuration.path)
            }
            #expect(error?.description.contains(name) == true, "\(error?.description ?? "")")
        }
    }

    @Test("what is wrong with the folder is said in one line, with status 1")
    func surroundings() async throws {
        try await withFixture { fixture in
            let fleet = try TestFleet()
            func failure(_ prepare: (inout AgentFolder) throws -> Void) async throws -> String {
                var agent = try AgentFolder(fixture, fleet: fleet, port: 1)
                try prepare(&agent)
                try agent.write()
                let result = try await agent.runToEnd()
                #expect(result.status == 1, "\(result.errors)")
                return result.errors
            }
            let readable = try await failure { try $0.write("{}", to: "credentials.json", mode: 0o644) }
            #expect(readable.contains("chmod 600"), "\(readable)")
            let empty = try await failure { try $0.write(#"{"user":"x"}"#, to: "credentials.json", mode: 0o600) }
            #expect(empty.contains("credentials.json") && empty.contains("password"), "\(empty)")
            let absent = try await failure { $0.members["credentials"] = "\"none.json\"" }
            #expect(absent.contains("none.json") && absent.contains("No such file"), "\(absent)")
            let long = try await failure { $0.members["socket"] = "\"\(String(repeating: "s", count: 120))\"" }
            #expect(long.contains("107") && long.contains("\"socket\""), "\(long)")
            let open = try await failure {
                try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: $0.folder.path)
            }
            #expect(open.contains("chmod go-w"), "\(open)")
            let file = try await failure { try $0.write("mine", to: "agent.sock", mode: 0o600) }
            #expect(file.contains("is no socket"), "\(file)")
            let state = try await failure { $0.members["state"] = "\"/proc/fleetbus\"" }
            #expect(state.contains("/proc/fleetbus"), "\(state)")
            let garbage = try await failure {
                try $0.write(String(repeating: "garbage ", count: 1_000), to: "state/agent.db", mode: 0o600)
            }
            #expect(garbage.contains("agent.db") && garbage.contains("not a database"), "\(garbage)")
        }
    }

    @Test("a store of a newer version, or of another device, is left alone")
    func foreignStore() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: 1)
            let process = try await agent.start(fixture)
            await process.terminate()
            let database = agent.state.appendingPathComponent("agent.db").path
            var moved = agent
            moved.members["device"] = "\"till-2\""
            try moved.write()
            let foreign = try await moved.runToEnd()
            #expect(foreign.status == 1 && foreign.errors.contains("till-1"), "\(foreign.errors)")
            try agent.write()
            try DeviceStoreTampering.pretendNewer(database)
            let newer = try await agent.runToEnd()
            #expect(newer.status == 1 && newer.errors.contains("newer version"), "\(newer.errors)")
        }
    }

    @Test("a second agent on the same state is refused, and a socket that nobody answers on is replaced")
    func second() async throws {
        try await withFixture { fixture in
            let agent = try AgentFolder(fixture, fleet: TestFleet(), port: 1)
            let first = try await agent.start(fixture)
            let result = try await agent.runToEnd()
            #expect(result.status == 1 && result.errors.contains("another agent"), "\(result.errors)")
            _ = try LinkClient(agent.socket)
            await first.killNow()
            #expect(FileManager.default.fileExists(atPath: agent.socket))
            let next = try await agent.start(fixture)
            _ = try LinkClient(agent.socket)
            #expect(await next.terminate() == 0)
            #expect(!FileManager.default.fileExists(atPath: agent.socket))
        }
    }
}
