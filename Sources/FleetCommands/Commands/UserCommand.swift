import ArgumentParser
import FleetHome
import FleetProtocol

struct UserCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user",
        abstract: "Adds, lists and removes people.",
        subcommands: [UserAdd.self, UserList.self, UserRemove.self])
}

struct UserOptions: ParsableArguments {
    @Argument(help: "The person's name.", transform: { try Name(checking: $0) })
    var name: Name
    @Flag(help: "Who may look, and change nothing.")
    var viewer = false
    @OptionGroup var home: HomeOptions

    var user: User { viewer ? .viewer(name) : .operator(name) }
}

struct UserAdd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Gives a person a password, or a new one.",
        discussion: "The password stands in the file that is named, readable for the folder's owner alone.")

    @OptionGroup var user: UserOptions

    func run() throws {
        let home = try user.home.open()
        let file = try home.addUser(user.user)
        try Terminal.print(["\(user.user.text) may connect; the password is in \(file)"])
    }
}

struct UserList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists who may connect besides devices.")

    @OptionGroup var home: HomeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let users = try home.open().users().map(\.text)
        var table = Table([.init("USER")])
        for user in users { table.add([user]) }
        try output.show(Report(.array(users.map { .object(["user": .string($0)]) }), table: table.lines))
    }
}

struct UserRemove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Takes a person's password away, and ends the person's connections.")

    @OptionGroup var user: UserOptions

    func run() throws {
        try user.home.open().removeUser(user.user)
        try Terminal.print(["\(user.user.text) is removed"])
    }
}
