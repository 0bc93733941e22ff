import ArgumentParser
import FleetHome
import FleetProtocol
import Mosquitto

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows acknowledgements, log levels, events and presence as they come, until Ctrl-C.",
        discussion: """
            With -o json each line is one object. What is so already is not shown: `fleetctl get apps` does that.

            EXAMPLES
              fleetctl watch --app com.example.mail
              fleetctl watch --for 5m -o json
            """)

    @Option(help: "One app only.", transform: { try AppID(checking: $0) })
    var app: AppID?
    @Option(help: "One device only.", transform: { try DeviceID(checking: $0) })
    var device: DeviceID?
    @Option(
        name: .customLong("for"), help: ArgumentHelp("End by itself after this time: 90s, 5m.", valueName: "time"),
        transform: { try WaitOptions.Limit(checking: $0) })
    var limit: WaitOptions.Limit?
    @OptionGroup var fleet: FleetOptions
    @Option(name: .shortAndLong, help: "How to show it.")
    var output: Format = .table

    enum Format: String, CaseIterable, ExpressibleByArgument { case table, json }

    func run() async throws {
        let home = try fleet.home.reach()
        try await BrokerConnection.open(home, as: fleet.user(of: home)) { connection in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await Self.subscribe(connection) }
                group.addTask { try await show(connection) }
                if let limit { group.addTask { try await Task.sleep(for: .seconds(limit.seconds)) } }
                defer { group.cancelAll() }
                // Whichever ends first ends the command: the time, or the connection for good.
                try await group.next()
            }
        }
    }

    /// Subscribes at each connection: they start clean.
    private static func subscribe(_ connection: BrokerConnection) async throws {
        let prefix = Address.prefix(of: connection.home.context.fleet)
        var told: String?
        for await state in connection.client.states {
            switch state {
            case .connected(let number):
                told = nil
                do {
                    try await connection.client.subscribe(
                        to: [prefix + "reply/#", prefix + "presence/#"], options: SubscribeOptions(retained: .skip))
                    if number > 1 { Terminal.note("connected again; what happened in between is not shown") }
                } catch let error as MosquittoError where error.code == .subscriptionRefused {
                    throw CommandError(.refused, error.message)
                } catch {
                    continue  // The connection went down meanwhile; the next one comes by itself.
                }
            case .waiting(_, let cause):
                // The user was removed, or has another password now.
                if cause.code == .authenticationRefused { throw connection.unknownUser }
                if told != cause.message { Terminal.note("the connection to the broker was lost: \(cause.message)") }
                told = cause.message
            case .connecting, .closed: break
            }
        }
    }

    private func show(_ connection: BrokerConnection) async throws {
        var feed = LiveFeed(fleet: connection.home.context.fleet)
        for await message in connection.client.messages {
            let entries = feed.handle(topic: message.topic, payload: message.payload, at: .now)
            let shown = entries.filter { entry in
                (device == nil || entry.device == device?.text) && (app == nil || entry.app == app?.text)
            }
            try Terminal.print(shown.map { output == .json ? $0.value.lineText : $0.line })
        }
    }
}
