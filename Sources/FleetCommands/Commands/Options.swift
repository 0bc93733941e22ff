import ArgumentParser
import FleetHome
import FleetProtocol
import Foundation

/// Which fleet.
struct HomeOptions: ParsableArguments {
    /// Addresses by which each machine means itself.
    static let loopback = ["127.0.0.1", "::1", "localhost"]

    @Option(name: .long, help: ArgumentHelp("The fleet's folder; FLEETCTL_HOME if absent.", valueName: "dir"))
    var home: String?

    var path: String {
        get throws {
            guard let path = home ?? ProcessInfo.processInfo.environment["FLEETCTL_HOME"], !path.isEmpty else {
                throw ValidationError("name the fleet's folder with --home or FLEETCTL_HOME")
            }
            return path
        }
    }

    func open() throws -> FleetHome { try FleetHome(opening: try path) }
    /// Also a person's folder, from which one can ask and not make.
    func reach() throws -> FleetHome { try FleetHome(reaching: try path) }
}

/// Which fleet, and as whom.
struct FleetOptions: ParsableArguments {
    @OptionGroup var home: HomeOptions

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp(
            "The user whose password of this folder is used: @operator.admin if absent, in a person's folder that person.",
            valueName: "user"),
        transform: { text in
            guard let user = User(text), [.operator, .viewer].contains(user.role) else {
                throw ValidationError("expected a user such as @operator.admin or @viewer.NAME")
            }
            return user
        })
    var user: User?

    func user(of home: FleetHome) -> User { user ?? home.context.holder ?? .operator(Name(unchecked: "admin")) }

    /// Runs `body` with the fleet's controller.
    func reach<Result>(_ body: (Controller) async throws -> Result) async throws -> Result {
        let home = try home.reach()
        return try await Controller.reach(home, as: user(of: home), body)
    }
}

/// In which form.
struct OutputOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: "How to show it.")
    var output: OutputFormat = .table

    func show(_ report: Report) throws { try Terminal.print(report.lines(as: output)) }
}

/// Why something is changed.
struct ReasonOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Why, for the history.", valueName: "text"))
    var why: String?

    /// The history would keep another text than was given.
    func validate() throws {
        guard let scalars = why?.unicodeScalars else { return }
        guard scalars.count <= 1_000 else {
            throw ValidationError("--why has \(scalars.count) characters, where at most 1000 are allowed")
        }
        guard !scalars.contains(where: Text.isControl) else {
            throw ValidationError("--why holds a control character: write it on one line")
        }
    }
}

enum Arguments {
    /// The ids in arguments that may hold several, separated by commas.
    static func ids<ID: Identifier>(_ texts: [String]) throws -> [ID] {
        try texts.flatMap { $0.split(separator: ",") }.map { try ID(checking: $0.trimmingCharacters(in: .whitespaces)) }
    }

    /// A file's content; `-` is standard input.
    static func read(_ file: String) throws -> (name: String, bytes: [UInt8]) {
        if file == "-" { return ("<stdin>", try content(of: .standardInput, "<stdin>")) }
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandError(.refused, "reading \(file) failed: \(String(cString: strerror(errno)))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var info = stat()
        if fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFDIR {
            throw CommandError(.refused, "\(file) is a folder: name the file")
        }
        return (file, try content(of: handle, file))
    }

    /// As much as a policy file may have, and a byte more.
    private static func content(of handle: FileHandle, _ name: String) throws -> [UInt8] {
        do {
            return Array(try handle.read(upToCount: YAMLSource.maximumSize + 1) ?? Data())
        } catch {
            let error = error as NSError
            let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
            let isOfSystem = cause.domain == NSPOSIXErrorDomain
            let reason = isOfSystem ? String(cString: strerror(Int32(cause.code))) : cause.localizedDescription
            throw CommandError(.refused, "reading \(name) failed: \(reason)")
        }
    }
}
