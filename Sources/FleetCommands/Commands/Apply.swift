import ArgumentParser
import FleetProtocol

struct Apply: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Puts the policies of files in force: all of them or, when anything is wrong, none.",
        discussion: """
            A file holds YAML or JSON, any number of documents. An aspect that a document leaves out stays as it is. \
            What is so already is not sent again.

            EXAMPLES
              fleetctl apply -f policy.yaml
              fleetctl apply -f policy.yaml --wait=2m --why "ticket 4711"
              fleetctl apply -f policy.yaml --dry-run    what it would do, without doing it
              generate-policy | fleetctl apply -f - --wait
              fleetctl apply -f policy.yaml --again      also what is so already
            """)

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("A policy file; - is standard input. May be repeated.", valueName: "file"))
    var file: [String]
    @Flag(
        help: """
            Send also what is so already. A retirement ends only by an auth document that is newer than it: this is one. A log \
            level that has expired begins its time anew.
            """)
    var again = false
    @OptionGroup var plan: PlanOptions
    @OptionGroup var wait: WaitOptions
    @OptionGroup var reason: ReasonOptions
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func validate() throws { try plan.validate(beside: wait) }

    func run() async throws {
        let policies = try PolicyFile(try file.map(Arguments.read))
        for warning in policies.warnings { Terminal.note("\(warning.place): warning: \(warning.message)") }
        let request = ApplyRequest(changes: policies.changes, why: reason.why, isAgain: again)
        if plan.isDry { return try await plan.show(.apply, request, fleet, output) }
        try await fleet.reach { controller in
            let body = try await controller.askUntilInterrupted(.apply, request)
            try await wait.finish(body, saying: "changed", controller, output)
        }
    }
}

struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Takes policies away: what the next layer says counts instead.",
        discussion: """
            EXAMPLES
              fleetctl delete com.example.mail --target group/kiosk --aspect config
              fleetctl delete -f policy.yaml          every aspect that it names
              fleetctl delete com.example.mail --target all --dry-run
            """)

    @Argument(help: "The app.", transform: { try AppID(checking: $0) })
    var app: AppID?
    @Option(help: "all, group/NAME or device/ID.", transform: { try Layer(parsing: $0) })
    var target: Layer?
    @Option(
        help: ArgumentHelp("Which aspect; all that there are if absent. May be repeated."),
        transform: { text in
            guard let aspect = Aspect(rawValue: text) else {
                throw ValidationError(
                    "unknown aspect '\(Text.printable(text, limit: 40))': expected "
                        + Aspect.allCases.map(\.text).joined(separator: ", "))
            }
            return aspect
        })
    var aspect: [Aspect] = []
    @Option(name: .shortAndLong, help: ArgumentHelp("Policy files whose documents are taken away.", valueName: "file"))
    var file: [String] = []
    @OptionGroup var plan: PlanOptions
    @OptionGroup var wait: WaitOptions
    @OptionGroup var reason: ReasonOptions
    @OptionGroup var fleet: FleetOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        try plan.validate(beside: wait)
        if file.isEmpty {
            guard app != nil, target != nil else {
                throw ValidationError("name the app and its --target, or a file with -f")
            }
        } else if app != nil || target != nil || !aspect.isEmpty {
            throw ValidationError("-f says what is deleted: name no app, --target or --aspect beside it")
        }
    }

    func run() async throws {
        let documents = try self.documents()
        let request = SelectionRequest(documents: documents, why: reason.why)
        if plan.isDry { return try await plan.show(.delete, request, fleet, output) }
        try await fleet.reach { controller in
            let body = try await controller.askUntilInterrupted(.delete, request)
            try await wait.finish(body, saying: "deleted", controller, output)
        }
    }

    private func documents() throws -> [DocumentSelector] {
        guard let app, let target else { return try PolicyFile(try file.map(Arguments.read)).selectors }
        if aspect.isEmpty { return [DocumentSelector(app: app, layer: target, aspect: nil)] }
        return aspect.map { DocumentSelector(app: app, layer: target, aspect: $0) }
    }
}
