import ArgumentParser
import FleetHome
import FleetProtocol

struct UserCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user",
        abstract: "Adds, lists and removes people; also gives the controller another password.",
        subcommands: [UserAdd.self, UserList.self, UserRemove.self])
}

struct UserOptions: ParsableArguments {
    /// A person's name, or the whole user name as `user list` shows it.
    struct Person {
        /// nil: the controller.
        let name: Name?
        var isViewer: Bool?

        init(_ text: String) throws {
            switch text.hasPrefix("@") ? User(text) : nil {
            case .operator(let name): (self.name, isViewer) = (name, false)
            case .viewer(let name): (self.name, isViewer) = (name, true)
            case .controller: name = nil
            case nil, .bridge, .device: name = try Name(checking: text)
            }
        }
    }

    @Argument(help: "The person's name.", transform: { try Person($0) })
    var name: Person
    @Flag(help: "Who may look, and change nothing.")
    var viewer = false
    @OptionGroup var home: HomeOptions

    var user: User {
        guard let person = name.name else { return .controller }
        return name.isViewer ?? viewer ? .viewer(person) : .operator(person)
    }

    func validate() throws {
        if viewer, name.name == nil { throw ValidationError("\(user.text) is no viewer: leave out --viewer") }
        if viewer, name.isViewer == false {
            throw ValidationError("\(user.text) is an operator: leave out --viewer, or the '@operator.'")
        }
    }
}

struct UserAdd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Gives a person a password, or a new one.",
        discussion: """
            The password stands in the file that is named, readable for the folder's owner alone. With --out the person gets \
            a folder to run fleetctl on, here or on another machine: with the password, where the broker is and, with TLS, \
            its authority, but with none of the fleet's keys. Keep it private on its way.

            EXAMPLES
              fleetctl user add night-shift
              fleetctl user add eve --viewer --out ./eve
              fleetctl status --home ./eve       what eve can do then
              fleetctl user add @controller      then start the controller again
            """)

    @OptionGroup var user: UserOptions
    @Option(help: ArgumentHelp("A folder to make for the person.", valueName: "dir"))
    var out: String?

    func validate() throws {
        if out != nil, user.user == .controller {
            throw ValidationError("the controller runs on the fleet's own folder: leave out --out")
        }
    }

    func run() throws {
        let home = try user.home.open()
        let isKnown = try home.users().contains(user.user)
        let (file, reload) = try home.addUser(user.user, folder: out)
        if reload == .notRunning {
            Terminal.note(
                "note: no broker runs on this home that this command could see; one that does needs a SIGHUP, or it "
                    + (isKnown ? "goes on with the old password" : "does not know this one"))
        }
        if out != nil, HomeOptions.loopback.contains(home.context.host) {
            Terminal.note(
                "note: the fleet's broker is known as \(home.context.host), so the folder is of use on this machine alone"
            )
        }
        if user.user == .controller {
            Terminal.note("note: a controller that runs has to be started again: it knows the old password alone")
        }
        let what = isKnown ? "has a new password, and the old one is void; it" : "may connect; the password"
        try Terminal.print(["\(user.user.text) \(what) is in \(file)"])
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
        let home = try user.home.open()
        let users = try home.users()
        if case .operator(let name) = user.user, !users.contains(user.user), users.contains(.viewer(name)) {
            throw CommandError(.refused, "\(name) is a viewer: `fleetctl user remove \(name) --viewer`")
        }
        if try home.removeUser(user.user) == .notRunning {
            Terminal.note(
                "note: no broker runs on this home that this command could see; one that does needs a SIGHUP, or"
                    + " \(user.user.text) can go on with the password")
        }
        let isOperated = users.contains { if case .operator = $0 { $0 != user.user } else { false } }
        if !isOperated {
            Terminal.note(
                "warning: nobody is left who may change anything; `fleetctl user add NAME` makes an operator")
        }
        try Terminal.print(["\(user.user.text) is removed"])
    }
}
