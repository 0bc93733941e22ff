public import ArgumentParser
import DeviceAgent
import FleetProtocol
import Glibc
public import Logging
import ServiceLifecycle
import UnixSignals

@main
struct FleetAgent: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet-agent",
        abstract: "Keeps the policy of every app on one device, and tells the apps and the fleet.",
        discussion: """
            Examples:
              fleet-agent run --config /etc/fleetbus/agent.json
              fleet-agent code --config /etc/fleetbus/agent.json --app com.example.mail
              fleet-agent passcode enter --config /etc/fleetbus/agent.json
            """,
        // As presence says it: fleet-agent/0.1.0.
        version: fleetbusVersion, subcommands: [Run.self, Code.self, Passcode.self])
}

extension FleetAgent {
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Run the agent of this device until it is told to end (SIGTERM or SIGINT).",
            discussion: """
                The folder of agent.json, as `fleetctl enroll device` makes it, holds all the agent needs: \
                credentials.json (mode 0600), state/ (what survives a restart, and the keys of apps), apps.d/ (who may \
                be which app) and agent.sock, where apps find the agent.

                Without a file in apps.d/, only processes of the agent's own user may be apps. A file allows one app, \
                by the user it runs as, by a token (then its mode is 0600), or by both; it counts at once, while nobody \
                but its owner, who is the agent's user or root, can change it. A connected app that no file allows any \
                more is sent away within half a minute:
                  {"v":1,"app":"com.example.mail","uid":1000}
                  {"v":1,"app":"com.example.notes","token":"…at least 16 bytes…"}

                Examples:
                  fleet-agent run --config /etc/fleetbus/agent.json
                  fleet-agent run --config ./till-1/agent.json --log-level debug

                It ends with status 0 when it was told to, and with 1 and the reason when it cannot start or go on.
                """)

        @Option(help: "The device's agent.json, as `fleetctl enroll device` made it.")
        var config: String

        @Option(help: "How much to log: trace, debug, info, notice, warning, error or critical.")
        var logLevel = Logger.Level.info

        func run() async throws {
            signal(SIGPIPE, SIG_IGN)  // A display command may end before it has read its text.
            LoggingSystem.bootstrap(StreamLogHandler.standardError)
            var logger = Logger(label: "fleet-agent")
            logger.logLevel = logLevel
            let service = try AgentService(AgentConfiguration.read(config), logger: logger)
            let group = ServiceGroup(
                services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
            try await group.run()
        }
    }

    struct Code: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Enter the debug code that allows an app to log in detail.",
            discussion: """
                The code is read from standard input, without showing it on a terminal. The agent must run; whoever \
                asks is its own user, or root.

                Example: fleet-agent code --config /etc/fleetbus/agent.json --app com.example.mail
                """)

        @Option(help: "The device's agent.json.")
        var config: String

        @Option(help: "The app whose log level waits for the code.")
        var app: String

        func run() async throws {
            let isRight = try DebugCodePrompt(configuration: config).ask(for: app)
            print(isRight ? "The code is right." : "The code is wrong, or no log level of \(app) waits for one.")
            if !isRight { throw ExitCode.failure }
        }
    }
}

extension FleetAgent {
    struct Passcode: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Enter, set or change the device's passcode, or lock the apps that ask for it.",
            discussion: """
                Where the fleet asks for a passcode, an app's keys and secure files are out of its reach until the \
                passcode has been entered here: after each start of the agent, and after the time that nobody has used \
                an app. Passcodes are read from standard input, a line each, and not shown on a terminal. The agent \
                must run; whoever asks is its own user, or root.

                Examples:
                  fleet-agent passcode set --config /etc/fleetbus/agent.json
                  fleet-agent passcode enter --config /etc/fleetbus/agent.json
                  fleet-agent passcode set --change --config /etc/fleetbus/agent.json
                  fleet-agent passcode lock --config /etc/fleetbus/agent.json

                It ends with status 0 when that was done, and with 1 and the reason when it was not.
                """,
            subcommands: [Enter.self, Set.self, Lock.self])

        struct Options: ParsableArguments {
            @Option(help: "The device's agent.json.")
            var config: String

            func prompt() throws -> PasscodePrompt {
                try PasscodePrompt(configuration: config)
            }
        }

        struct Enter: ParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Unlock the apps that ask for the passcode.")
            @OptionGroup var options: Options
            func run() throws { try report(options.prompt().enter()) }
        }

        struct Set: ParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Set the passcode of this device, or change it.")
            @OptionGroup var options: Options

            @Flag(help: "Change the one that is set: the present one is asked for first.")
            var change = false

            func run() throws { try report(options.prompt().set(isChange: change)) }
        }

        struct Lock: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lock the apps that ask for the passcode until it is entered again.")
            @OptionGroup var options: Options
            func run() throws { try report(options.prompt().lock()) }
        }

        private static func report(_ result: PasscodeResult) throws {
            print(result.text)
            if result.kind != .done { throw ExitCode.failure }
        }
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
