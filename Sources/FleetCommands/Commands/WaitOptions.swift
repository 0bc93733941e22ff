import ArgumentParser
import FleetProtocol
import UnixSignals

/// Whether to wait until the devices have followed, and the end of `apply` and `delete`.
struct WaitOptions: ParsableArguments {
    struct Limit: CustomStringConvertible {
        let seconds: Int64
        init(seconds: Int64) { self.seconds = seconds }
        init(checking text: String) throws {
            guard let seconds = DurationText.seconds(text), (1...86_400).contains(seconds) else {
                throw ValidationError("\(DurationText.expectation), from 1s to 24h")
            }
            self.seconds = seconds
        }
        var description: String { DurationText.text(seconds) }
    }

    /// How long `--wait` waits if it names no time.
    private static let usual = Limit(seconds: 30)

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Wait until every app that is online has answered, 30s if no time is named (exit status 3 if not in time,"
                + " or not all as it was wanted). A retirement waits for devices that are offline as well: until all have"
                + " destroyed the keys.", valueName: "time"), transform: { try Limit(checking: $0) })
    var wait: Limit?

    /// The arguments with a time for each `--wait`: the options of argument-parser that may stand alone take what they
    /// cannot read, or what stands before another option, for nothing at all.
    static func completed(_ arguments: [String]) -> [String] {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        return arguments.indices.map { index in
            guard index < end, arguments[index] == "--wait" else { return arguments[index] }
            // What begins with a digit is meant as a time.
            let next = index + 1 < end ? arguments[index + 1] : ""
            return next.utf8.first.map { (0x30...0x39).contains($0) } == true ? "--wait" : "--wait=\(usual)"
        }
    }

    /// Shows the controller's warnings and what was changed; with --wait, then waits until every online device has
    /// answered, or the time is over.
    ///
    /// - Parameter change: What has become of a document that is not as it was, in a word.
    func finish(
        _ body: JSONValue, saying change: String, _ controller: Controller, _ output: OutputOptions
    ) async throws {
        Warnings.show(in: body)
        let response: ChangeResponse = try body.decoded()
        func report(_ progress: Progress?) -> Report { Self.report(response, change, progress) }
        guard let wait else { return try output.show(report(nil)) }
        // People see at once what has happened; a program gets one value at the end.
        let isForPeople = output.output == .table
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        if isForPeople { try Terminal.printToAnyone { try output.show(report(nil)) } }
        let followed: Progress?
        do {
            let documents = response.results.map {
                DocumentSelector(app: $0.app, layer: $0.layer, aspect: $0.aspect, revision: $0.revision)
            }
            followed = try await Self.follow(
                documents, since: response.epoch, controller, for: wait, until: signals)
        } catch let error as CommandError {
            if !isForPeople { try Terminal.printToAnyone { try output.show(report(nil)) } }
            throw CommandError(
                .notConverged, "the change is made, and how far the devices are could not be read: \(error)")
        }
        guard let progress = followed else {
            if !isForPeople { try Terminal.printToAnyone { try output.show(report(nil)) } }
            throw CommandError(
                .interrupted, "interrupted: the change is made, and not waited for any longer; see `fleetctl status`")
        }
        try Terminal.printToAnyone {
            if isForPeople {
                try Terminal.print([""] + progress.summary)
            } else {
                try output.show(report(progress))
            }
        }
        if let shortfall = progress.shortfall(within: "\(wait)") { throw CommandError(.notConverged, shortfall) }
    }

    /// How far the devices are when all who are online have answered or the time is over, as far as that could be read; nil
    /// after Ctrl-C. A controller or broker that is away may come back meanwhile.
    private static func follow(
        _ documents: [DocumentSelector], since epoch: Int64?, _ controller: Controller, for limit: Limit,
        until signals: UnixSignalsSequence
    ) async throws -> Progress? {
        try await withThrowingTaskGroup(of: Progress?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in signals { break }
                return nil
            }
            group.addTask {
                let start = ContinuousClock.now
                let end = start + .seconds(limit.seconds)
                var known: Progress?
                var readAt = Timestamp.now
                while true {
                    do {
                        var progress = try await Self.progress(
                            documents, since: epoch, controller, naming: false, after: known)
                        (known, readAt) = (progress, .now)
                        // Names are looked for once, at the end.
                        if !progress.isSettled, ContinuousClock.now >= end {
                            progress = try await Self.progress(
                                documents, since: epoch, controller, naming: true, after: known)
                            known = progress
                        }
                        if progress.isSettled || ContinuousClock.now >= end { return progress }
                    } catch let error as CommandError where error.status == .unreachable {
                        if ContinuousClock.now >= end {
                            guard let known else { throw error }
                            return known.outdated(error, since: readAt)
                        }
                    }
                    let now = ContinuousClock.now
                    try await Task.sleep(for: min(pause(behind: now - start), max(end - now, .zero)))
                }
            }
            return try await group.next() ?? nil
        }
    }

    /// Whoever has waited for long is not in a hurry, and the controller counts anew each time.
    static func pause(behind waited: Duration) -> Duration {
        min(max(waited / 20, .milliseconds(200)), .seconds(5))
    }

    /// An answer has room for the rows of some 400 apps.
    private static let appsAtOnce = 100

    /// Asks in parts, each with all documents of its apps, and notes who has left since `earlier`.
    private static func progress(
        _ documents: [DocumentSelector], since epoch: Int64?, _ controller: Controller, naming: Bool,
        after earlier: Progress?
    ) async throws -> Progress {
        let apps = Dictionary(grouping: documents, by: \.app).sorted { $0.key < $1.key }.map(\.value)
        var parts: [ProgressAnswer] = []
        for start in stride(from: 0, to: apps.count, by: appsAtOnce) {
            let part = apps[start..<min(start + appsAtOnce, apps.count)].flatMap { $0 }
            parts.append(
                try await controller.ask(.progress, SelectionRequest(documents: part, names: naming)).decoded())
        }
        var progress = Progress(joining: parts, isNamed: naming, since: epoch)
        if let earlier { progress.follow(earlier) }
        return progress
    }

    private static func report(_ response: ChangeResponse, _ change: String, _ progress: Progress?) -> Report {
        var table = Table([
            .init("APP"), .init("TARGET"), .init("ASPECT"), .init("REVISION", isNumber: true), .init("CHANGE"),
        ])
        for result in response.results {
            table.add([
                result.app.text, result.layer.description, result.aspect.text, "\(result.revision)",
                result.isChanged ? change : "as it was",
            ])
        }
        let lines = response.results.isEmpty ? ["nothing to change"] : table.lines
        var value = [
            JSONValue.Member("results", .array(response.results.map(\.value))),
            JSONValue.Member("warnings", .array(response.warnings.map { .string($0) })),
        ]
        if let progress {
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
