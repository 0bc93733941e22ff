import ArgumentParser
import FleetProtocol

struct Group: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes, changes, lists and deletes groups of devices.",
        subcommands: [GroupSet.self, GroupList.self, GroupDelete.self])
}

struct GroupSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Makes a group, or changes it; what is not named stays as it is.",
        discussion: """
            Among the groups of a device the higher priority wins, then the smaller id.

            EXAMPLES
              fleetctl group set kiosk --priority 10 --devices till-1,till-2
              fleetctl group set kiosk --add till-3 --remove till-1
              fleetctl group set kiosk --add till-3 --dry-run    what it would do
            """)

    @Argument(help: "The group.", transform: { try GroupID(checking: $0) })
    var group: GroupID
    @Option(parsing: .unconditional, help: "Who wins when a device is in several groups: \(Self.range).")
    var priority: Int64?
    @Option(help: ArgumentHelp("The members, all of them; \"\" for none.", valueName: "ids"))
    var devices: [String] = []
    @Option(help: ArgumentHelp("More members.", valueName: "ids"))
    var add: [String] = []
    @Option(help: ArgumentHelp("Those who leave.", valueName: "ids"))
    var remove: [String] = []
    @OptionGroup var plan: PlanOptions
    @OptionGroup var reason: ReasonOptions
    @OptionGroup var fleet: FleetOptions

    private static var range: String { "\(GroupMeta.priorities.lowerBound) to \(GroupMeta.priorities.upperBound)" }

    func validate() throws {
        if let priority, !GroupMeta.priorities.contains(priority) {
            throw ValidationError("--priority \(priority) is outside \(Self.range)")
        }
        if !devices.isEmpty, !add.isEmpty || !remove.isEmpty {
            throw ValidationError("--devices names all members: --add and --remove cannot stand beside it")
        }
    }

    func run() async throws {
        let request = try self.request()
        if plan.isDry { return try await plan.show(.groupSet, request, fleet, nil) }
        let body = try await fleet.reach { try await $0.askUntilInterrupted(.groupSet, request) }
        Warnings.show(in: body)
        try Terminal.print(["group \(group) is set"])
    }

    private func request() throws -> GroupRequest {
        do {
            return GroupRequest(
                group: group, priority: priority, devices: devices.isEmpty ? nil : try Arguments.ids(devices),
                add: try Arguments.ids(add), remove: try Arguments.ids(remove), why: reason.why)
        } catch {
            throw CommandError(.refused, "\(error)")
        }
    }
}

struct GroupList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Lists the groups.")

    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try output.show(Self.report(try await fleet.reach { try await $0.list(.groups, ListRequest()) }))
    }

    static func report(_ groups: [JSONValue]) -> Report {
        var table = Table([
            .init("GROUP"), .init("PRIORITY", isNumber: true), .init("MEMBERS", isNumber: true), .init("DEVICES"),
        ])
        let groups = Self.whole(groups)
        for group in groups {
            let devices = group["devices"]?.arrayValue?.compactMap(\.stringValue) ?? []
            table.add([
                Cell.text(group["group"]), Cell.text(group["priority"]), "\(devices.count)",
                TerminalText.line(devices.joined(separator: ","), limit: 60),
            ])
        }
        return Report(.array(groups), table: table.lines)
    }

    /// The controller tells of a large group in parts, one behind the other.
    private static func whole(_ parts: [JSONValue]) -> [JSONValue] {
        parts.reduce(into: []) { groups, part in
            guard let last = groups.last, last["group"] == part["group"], case .object(let members) = last else {
                return groups.append(part)
            }
            let devices = (last["devices"]?.arrayValue ?? []) + (part["devices"]?.arrayValue ?? [])
            groups[groups.count - 1] = .object(
                members.map { $0.name == "devices" ? JSONValue.Member("devices", .array(devices)) : $0 })
        }
    }
}

struct GroupDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Deletes a group: its members leave it, its policies count no more.")

    @Argument(help: "The group.", transform: { try GroupID(checking: $0) })
    var group: GroupID
    @OptionGroup var plan: PlanOptions
    @OptionGroup var reason: ReasonOptions
    @OptionGroup var fleet: FleetOptions

    func run() async throws {
        let request = GroupRequest(group: group, why: reason.why)
        if plan.isDry { return try await plan.show(.groupDelete, request, fleet, nil) }
        Warnings.show(in: try await fleet.reach { try await $0.askUntilInterrupted(.groupDelete, request) })
        try Terminal.print(["group \(group) is deleted"])
    }
}
