import FleetHome
import FleetProtocol
import Foundation
import Glibc

/// One run of fleetctl.
final class ChaosQuestion {
    /// The arguments, for people.
    let text: String
    private let child: Child
    private let streams: Child.Streams
    private let begun: Int64
    /// How long fleetctl may take: it gives up by itself long before.
    private static let patience: Int64 = 45_000

    init(_ arguments: [String], named name: String, fleet: ChaosFleet, at now: Int64) throws {
        text = arguments.joined(separator: " ")
        begun = now
        streams = Child.Streams(
            output: "\(fleet.folder)/fleetctl/\(name).out", errors: "\(fleet.folder)/fleetctl/\(name).err")
        for file in [streams.output, streams.errors ?? ""] { unlink(file) }
        child = try Child(try Child.path(of: "fleetctl"), arguments + ["--home", fleet.home.path], streams)
        fleet.questions.append(child)
    }

    /// How it has ended; killed when it takes too long.
    func ending(at now: Int64) -> Child.Ending? {
        if now > begun + Self.patience { child.signal(SIGKILL) }
        return child.ending
    }

    /// What it printed.
    var value: JSONValue? {
        guard let data = FileManager.default.contents(atPath: streams.output), !data.isEmpty else { return nil }
        return try? JSONValue(json: Array(data), limit: data.count)
    }

    var errors: String {
        let data = streams.errors.flatMap { FileManager.default.contents(atPath: $0) } ?? Data()
        return Text.printable(String(decoding: data, as: UTF8.self), limit: 400)
    }
}
