import ArgumentParser
import FleetHome
import FleetProtocol

struct Key: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists, replaces and withdraws the keys that the controller signs with.",
        subcommands: [KeyList.self, KeyRotate.self, KeyWithdraw.self])

    static func report(_ keys: [FleetHome.TrustedKey]) -> Report {
        var table = Table([.init("KEY"), .init("STATE")])
        for key in keys { table.add([key.id.text, key.signs ? "signs" : "trusted"]) }
        let rows = keys.map { JSONValue.object(["key": .string($0.id.text), "signs": .bool($0.signs)]) }
        return Report(.array(rows), table: table.lines)
    }

    /// Shows the keys as they are now, and what is to be done.
    static func finish(_ home: FleetHome, _ output: OutputOptions) throws {
        try output.show(report(try home.trustedKeys()))
        Terminal.note(
            try home.isControllerRunning()
                ? "note: start the controller again: until then it signs as before, and devices hear nothing of it"
                : "note: devices hear of it when the controller starts")
    }
}

struct KeyList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the keys that devices believe, and which of them signs.")

    @OptionGroup var home: HomeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let home = try home.open()
        try output.show(Key.report(try home.trustedKeys()))
        if try home.isControllerRunning() {
            Terminal.note(
                "note: of what was rotated or withdrawn since its last start the controller knows nothing yet")
        }
    }
}

struct KeyRotate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Makes a new signing key, for the controller's next start.",
        discussion: """
            What the old key has signed goes on to count until it is withdrawn; a withdrawn key's documents are signed \
            again by the controller when it starts. Devices that are away follow when they come back. Back keys/ and \
            trust.json up afterwards.

            EXAMPLES
              fleetctl key rotate
              fleetctl key rotate --withdraw-others    somebody else may have the old one
            """)

    @Flag(help: "Withdraw all other keys: devices believe what they sign no more.")
    var withdrawOthers = false
    @OptionGroup var home: HomeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let home = try home.open()
        try home.rotateSigningKey(withdrawingOthers: withdrawOthers)
        try Key.finish(home, output)
    }
}

struct KeyWithdraw: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw",
        abstract: "Lets devices believe a key no more, from the controller's next start on.",
        discussion: """
            The controller signs again, at that start, what the key has signed.

            EXAMPLE
              fleetctl key withdraw 0f2a6c7d9b1e4f38
            """)

    @Argument(help: "The key, as `fleetctl key list` names it.", transform: { try KeyID(checking: $0) })
    var key: KeyID
    @OptionGroup var home: HomeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let home = try home.open()
        try home.withdrawKey(key)
        try Key.finish(home, output)
    }
}
