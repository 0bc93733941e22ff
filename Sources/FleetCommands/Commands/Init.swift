import ArgumentParser
import FleetHome
import FleetProtocol
import Foundation

struct Init: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes a fleet: its folder, keys, and a configuration that Mosquitto runs with.",
        discussion: """
            The broker listens on the loopback interface unless told otherwise, and knows nobody without a password.

            EXAMPLES
              fleetctl init ./demo
              sudo fleetctl init /var/lib/fleetbus/shops --host mqtt.example.com \\
                --listen 0.0.0.0 --port 8883 \\
                --tls-ca ca.pem --tls-certificate mqtt.pem --tls-key mqtt.key
            """)

    @Argument(help: ArgumentHelp("The folder to make; as --home.", valueName: "dir"))
    var folder: String?
    @OptionGroup var home: HomeOptions

    @Option(help: ArgumentHelp("The fleet's name in topics; the folder's name if absent.", valueName: "id"))
    var fleet: String?
    @Option(help: "Where devices and operators find the broker.")
    var host = "127.0.0.1"
    @Option(help: "The broker's port.")
    var port: UInt16 = 1_883
    @Option(help: ArgumentHelp("The address that the broker listens on.", valueName: "address"))
    var listen = "127.0.0.1"
    @Option(
        help: ArgumentHelp(
            "As whom Mosquitto runs when root starts it; 'mosquitto' if absent. Only root can choose.",
            valueName: "user"))
    var brokerUser: String?
    @Option(help: ArgumentHelp("Who vouches for the broker (PEM).", valueName: "file")) var tlsCA: String?
    @Option(help: ArgumentHelp("The broker's certificate (PEM).", valueName: "file")) var tlsCertificate: String?
    @Option(help: ArgumentHelp("The broker's key (PEM).", valueName: "file")) var tlsKey: String?
    @OptionGroup var broker: GuardOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard port > 0 else { throw ValidationError("the port must be 1 to 65535") }
        if folder != nil, home.home != nil { throw ValidationError("name the folder once: as DIR or with --home") }
        let files = [tlsCA, tlsCertificate, tlsKey].compactMap { $0 }
        guard files.isEmpty || files.count == 3 else {
            throw ValidationError("TLS needs all three of --tls-ca, --tls-certificate and --tls-key")
        }
        guard Self.isAddress(listen) else {
            throw ValidationError(
                "--listen \(Text.printable(listen, limit: 60)): expected an address of this machine, such as 0.0.0.0 or ::1"
            )
        }
        guard !host.isEmpty, !host.contains(where: \.isWhitespace) else {
            throw ValidationError(
                "--host '\(Text.printable(host, limit: 60))': expected a name or an address, without spaces")
        }
        guard Self.canRun(as: brokerUser, by: NSUserName(), isRoot: geteuid() == 0) else {
            throw ValidationError(
                "only root can let the broker run as another user: leave out --broker-user, or run this as root")
        }
    }

    func run() throws {
        let path = try folder ?? home.path
        let name = fleet ?? URL(fileURLWithPath: path).lastPathComponent
        let id: FleetID
        do {
            id = try FleetID(checking: name)
        } catch {
            throw ValidationError("\(error)" + (fleet == nil ? "; name the fleet with --fleet" : ""))
        }
        var tls: HomeContext.TLS?
        if let tlsCA, let tlsCertificate, let tlsKey {
            try Self.checkPEM(tlsCA, holds: "CERTIFICATE")
            try Self.checkPEM(tlsCertificate, holds: "CERTIFICATE")
            try Self.checkPEM(tlsKey, holds: "PRIVATE KEY")
            tls = HomeContext.TLS(authority: tlsCA, certificate: tlsCertificate, key: tlsKey)
        }
        let made = try FleetHome.create(
            at: path, fleet: id, host: host, port: port, listen: listen, brokerUser: brokerUser, tls: tls,
            guardLibrary: try broker.library)
        warn(of: made)
        try output.show(Self.report(made))
    }

    /// What a fleet would find out only when its broker starts, or its first device looks for it.
    private func warn(of home: FleetHome) {
        let isOpen = !HomeOptions.loopback.contains(listen)
        if home.context.tls == nil, isOpen {
            Terminal.note(
                "warning: the broker listens on \(listen) without TLS: passwords and policies can be read on the way")
        }
        if isOpen, HomeOptions.loopback.contains(host) {
            Terminal.note(
                "warning: devices are told to find the broker at \(host), which is each device itself: name it with --host"
            )
        }
        for file in home.filesClosedToBroker {
            Terminal.note(
                "warning: \(file) cannot be read by \(home.context.brokerUser ?? ""), as whom the broker will run")
        }
    }

    private static func checkPEM(_ file: String, holds what: String) throws {
        let text = String(decoding: try Arguments.read(file).bytes, as: UTF8.self)
        guard text.contains("-----BEGIN "), text.contains("\(what)-----") else {
            throw CommandError(
                .refused, "\(file) holds no \(what.lowercased()) in PEM form (-----BEGIN … \(what)-----)")
        }
        guard !text.contains("ENCRYPTED") else {
            throw CommandError(
                .refused,
                "\(file) is encrypted: Mosquitto would ask for its pass phrase at each start; name one that is not"
            )
        }
    }

    static func isAddress(_ text: String) -> Bool {
        var address = in6_addr()
        let plain = text.prefix { $0 != "%" }  // fe80::1%eth0
        return text == "localhost" || inet_pton(AF_INET, text, &address) == 1
            || inet_pton(AF_INET6, String(plain), &address) == 1
    }

    /// Whether Mosquitto will run as `user` when `caller` starts it.
    static func canRun(as user: String?, by caller: String, isRoot: Bool) -> Bool {
        user.map { isRoot || $0 == caller } ?? true
    }

    static func report(_ home: FleetHome) -> Report {
        let path = ShellWord.quoted(home.path)
        return Report(
            .object([
                "home": .string(home.path), "fleet": .string(home.context.fleet.text),
                "uuid": .string(home.context.uuid.text), "host": .string(home.context.host),
                "port": .integer(Int64(home.context.port)),
                "brokerConfiguration": .string(home.brokerConfigurationPath),
                "guard": home.context.guardLibrary.map(JSONValue.string) ?? .null,
            ]),
            table: [
                "Fleet \(home.context.fleet) is made in \(home.path); back its keys/ up.", "",
                "  mosquitto -c \(ShellWord.quoted(home.brokerConfigurationPath))",
                "  fleet-controller run --home \(path)",
                "  fleetctl enroll device ID --out DIR --home \(path)",
            ])
    }
}
