import AppConnect
import ArgumentParser
import Dispatch
import FleetProtocol
import Glibc
import Logging

@main
struct Command: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sample-app",
        abstract: "An app on AppConnect that says all it is told, one JSON object a line.",
        discussion: """
            It acknowledges every policy as applied, unless told otherwise, and reads commands from standard input:

            \(Input.usage.joined(separator: "\n"))

            It ends on quit, SIGTERM and SIGINT; the end of standard input does not end it.
            """, version: fleetbusVersion)

    @Option(help: "The path of the agent's socket.")
    var socket: String

    @Option(help: "The id to register as.", transform: { try AppID(checking: $0) })
    var app: AppID

    @Option(help: "A file with the app's token, where the agent asks for one.")
    var tokenFile: String?

    @Option(
        help: "The app's data folder: the install id, and demo data to erase. Default: AppConnect's, without demo data."
    )
    var data: String?

    @Option(
        help:
            "Callbacks to leave out, such as print,config: \(Callback.allCases.map(\.rawValue).joined(separator: " "))",
        transform: Command.callbacks)
    var without: Set<Callback> = []

    @Option(help: "Acknowledge so much later, such as 500ms, 2s or 1m.", transform: Command.duration)
    var ackAfter: Duration?

    @Flag(help: "Acknowledge nothing.")
    var neverAck = false

    @Option(
        help: ArgumentHelp(
            "Acknowledge with this state, or these policies with it: error, unsupported=print, error=config,openIn.",
            valueName: "state[=policies]"),
        transform: Answer.init)
    var answer = Answer()

    func run() throws {
        LoggingSystem.bootstrap { _ in JSONLineHandler() }
        let sample = SampleApp(
            answer: answer, ackAfter: ackAfter, neverAcks: neverAck, demo: data.map { DemoData(folder: "\($0)/demo") })
        var options = AppConnect.Options(app: app, socket: socket)
        options.token = try tokenFile.map(Self.token)
        options.dataFolder = data
        options.without = without
        options.connectionChanged = { Output.write(connection: $0) }
        let appConnect = AppConnect.shared
        appConnect.delegate = sample
        try appConnect.start(options: options)

        let ending = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)  // Or it would end the process before the source sees it.
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { Self.end() }
            source.resume()
            return source
        }
        // Reads to the end of the input; the process does not wait for it.
        DispatchQueue(label: "input").async {
            while let line = readLine() { Input.perform(line, in: appConnect, sample) }
        }
        withExtendedLifetime((sample, ending)) { dispatchMain() }
    }

    static func end() -> Never {
        // Who reads the output may have stopped: then a callback never ends, for which stop() waits beside its own second.
        DispatchQueue.global().asyncAfter(deadline: .now() + 2) { _exit(EXIT_SUCCESS) }
        AppConnect.shared.stop()
        Output.write("stopped")
        Glibc.exit(EXIT_SUCCESS)
    }

    private static func token(in path: String) throws -> String {
        guard let file = fopen(path, "r") else {
            throw ValidationError("--token-file '\(path)' cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1_024)
        let count = fread(&bytes, 1, bytes.count, file)
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    }

    private static func callbacks(_ text: String) throws -> Set<Callback> {
        try Set(
            text.split(separator: ",").map { name in
                guard let callback = Callback(rawValue: String(name)) else {
                    throw ValidationError(
                        "'\(name)' is no callback: expected "
                            + Callback.allCases.map(\.rawValue).joined(separator: ", "))
                }
                return callback
            })
    }

    private static func duration(_ text: String) throws -> Duration {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), number <= 1_000_000 else {
            throw ValidationError("'\(text)' is no duration: expected such as 500ms, 2s, 1m")
        }
        switch text.dropFirst(digits.count) {
        case "ms": return .milliseconds(number)
        case "s", "": return .seconds(number)
        case "m": return .seconds(number * 60)
        default: throw ValidationError("'\(text)' is no duration: expected such as 500ms, 2s, 1m")
        }
    }
}
