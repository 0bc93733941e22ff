import FleetHome
import FleetProtocol
import Mosquitto

/// A person's connection to the fleet's broker, for as long as a command runs.
struct BrokerConnection {
    let home: FleetHome
    let user: User
    let client: MQTTClient

    /// Connects, runs `body`, and closes the connection however `body` ends.
    static func open<Result>(
        _ home: FleetHome, as user: User, _ body: (BrokerConnection) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop()
        do {
            let result = try await open(home, user, loop, body)
            await loop.shutdown()
            return result
        } catch {
            await loop.shutdown()
            throw error
        }
    }

    private static func open<Result>(
        _ home: FleetHome, _ user: User, _ loop: EventLoop, _ body: (BrokerConnection) async throws -> Result
    ) async throws -> Result {
        let connection = BrokerConnection(
            home: home, user: user, client: try MQTTClient(try options(home, user), on: loop))
        do {
            try await connection.connect()
            let result = try await body(connection)
            await connection.client.close()
            return result
        } catch {
            await connection.client.close()
            throw error
        }
    }

    private static func options(_ home: FleetHome, _ user: User) throws -> ClientOptions {
        let credentials = try home.credentials(for: user)
        // One person may run several commands at once, so the id is not the user name alone.
        var options = ClientOptions(
            host: home.context.host, port: home.context.port,
            clientID: "\(user.text)~\(RandomID.random().text.prefix(8))")
        options.userName = user.text
        options.password = Password(Array(credentials.password.utf8))
        options.tls = home.context.tls.map { ClientOptions.TLS(authorityFile: $0.authority) }
        options.connectTimeout = .seconds(5)
        options.backoff = Backoff(minimum: .milliseconds(100), maximum: .seconds(2))
        return options
    }

    private var place: String { "\(home.context.host):\(home.context.port)" }

    /// What a broker's refusal means.
    var unknownUser: CommandError {
        CommandError(
            .unreachable,
            "the broker at \(place) does not know \(user.text) with the password of \(home.path)\n"
                + "Was the user removed, or given a new password (user add)? Else it is another fleet's broker, or was not told"
                + " of its new password file (SIGHUP)")
    }

    private func connect() async throws {
        do {
            try await connectToName()
        } catch let error as MosquittoError {
            switch error.code {
            case .authenticationRefused: throw unknownUser
            case .connectionFailed, .timedOut:
                throw CommandError(
                    .unreachable,
                    "no broker answers at \(place): \(error.message)"
                        + (home.context.holder == nil
                            ? "\nStart it with: mosquitto -c \(ShellWord.quoted(home.brokerConfigurationPath))" : ""))
            default: throw CommandError(.unreachable, "connecting to the broker at \(place) failed: \(error.message)")
            }
        }
    }

    /// Of a name's addresses the first attempt takes one, and only the second one surely IPv4.
    private func connectToName() async throws {
        do {
            try await client.connect()
        } catch let error as MosquittoError {
            let isNobodyThere = error.code == .connectionFailed || error.code == .timedOut
            guard isNobodyThere, !client.options.hostIsNumeric else { throw error }
            try await client.connect()
        }
    }
}
