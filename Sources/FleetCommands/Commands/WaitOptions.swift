import ArgumentParser
import FleetProtocol

/// Whether to wait until the devices have followed, and the end of `apply` and `delete`.
struct WaitOptions: ParsableArguments {
    struct Limit: ExpressibleByArgument, CustomStringConvertible {
        let seconds: Int64
        init(seconds: Int64) { self.seconds = seconds }
        init?(argument: String) {
            guard let seconds = DurationText.seconds(argument), (1...86_400).contains(seconds) else { return nil }
            self.seconds = seconds
        }
        var description: String { "\(seconds)s" }
        var defaultValueDescription: String { description }
    }

    @Option(
        name: .long, defaultAsFlag: Limit(seconds: 30),
        help: ArgumentHelp(
            "Wait until every app that is online has answered (exit status 3 if not in time).", valueName: "time"))
    var wait: Limit?

    /// Shows what was changed; with --wait after every online device has followed, or the time is over.
    func finish(
        _ body: JSONValue, _ documents: [DocumentSelector], _ controller: Controller, _ output: OutputOptions
    ) async throws {
        let response: ChangeResponse = try body.decoded()
        guard let wait else { return try output.show(Self.report(response, nil)) }
        let start = ContinuousClock.now
        let limit = Duration.seconds(wait.seconds)
        var progress = try await Self.progress(documents, controller)
        while !progress.isConverged, ContinuousClock.now - start < limit {
            try await Task.sleep(for: .milliseconds(200))
            progress = try await Self.progress(documents, controller)
        }
        try output.show(Self.report(response, progress))
        guard progress.isConverged else {
            let names = progress.waiting.filter(\.isOnline).map { "\n  \($0)" }.joined()
            throw CommandError(.notConverged, "\(progress.due) answers have not come within \(wait):\(names)")
        }
    }

    private static func progress(_ documents: [DocumentSelector], _ controller: Controller) async throws -> Progress {
        try await controller.ask(.progress, SelectionRequest(documents: documents)).decoded()
    }

    static func report(_ response: ChangeResponse, _ progress: Progress?) -> Report {
        var table = Table([
            .init("APP"), .init("TARGET"), .init("ASPECT"), .init("REVISION", isNumber: true), .init("CHANGE"),
        ])
        for result in response.results {
            table.add([
                result.app.text, result.layer.description, result.aspect.text, "\(result.revision)",
                result.isChanged ? "changed" : "as it was",
            ])
        }
        var lines = response.results.isEmpty ? ["nothing to change"] : table.lines
        var value = [
            JSONValue.Member("results", .array(response.results.map(\.value))),
            JSONValue.Member("warnings", .array(response.warnings.map { .string($0) })),
        ]
        if let progress {
            lines += ["", progress.summary]
            value.append(
                .init(
                    "progress",
                    .object([
                        "converged": .bool(progress.isConverged), "rows": .array(progress.rows.map(\.value)),
                    ])))
        }
        return Report(.object(value), table: lines)
    }
}

extension JSONWritable {
    /// The JSON form as a tree.
    var value: JSONValue {
        let bytes = json
        return (try? JSONValue(json: bytes, limit: bytes.count)) ?? .null  // What was written can be read.
    }
}
