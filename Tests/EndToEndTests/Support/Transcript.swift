import FleetProtocol
import Foundation
import Synchronization
import TestSupport

/// JSON documents in the order they came: what a program printed, or what a client received.
final class Transcript: Sendable {
    private let lines = Mutex<[(kind: String, value: JSONValue)]>([])

    /// Adds a line of JSON; `kind` is its member `event` unless it is given.
    func add(_ line: String, as kind: String? = nil) {
        let value = (try? JSONValue(json: Array(line.utf8), limit: 1 << 20)) ?? .string("no JSON: \(line)")
        lines.withLock { $0.append((kind ?? value["event"]?.stringValue ?? "", value)) }
    }

    func all(_ kind: String) -> [JSONValue] {
        lines.withLock { $0.filter { $0.kind == kind }.map(\.value) }
    }

    func removeAll() { lines.withLock { $0 = [] } }

    /// Waits until a document of this kind is there that `condition` holds for.
    @discardableResult
    func first(
        _ kind: String, where condition: @escaping @Sendable (JSONValue) -> Bool = { _ in true }
    ) async throws -> JSONValue {
        var found: JSONValue?
        do {
            try await until(kind) {
                found = self.all(kind).first(where: condition)
                return found != nil
            }
        } catch {
            throw TestFailure("\(error); there was \(text)")
        }
        return found ?? .null
    }

    /// Writes all of it below `folder`, for the validator: each kind is the name of a schema.
    func write(to folder: URL) throws {
        for (kind, documents) in Dictionary(grouping: lines.withLock { $0 }, by: \.kind) {
            let place = folder.appending(path: kind)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            let text = documents.map { $0.value.jsonText + "\n" }.joined()
            try Data(text.utf8).write(to: place.appending(path: "all.jsonl"))
        }
    }

    var text: String { lines.withLock { $0.map { "\($0.kind) \($0.value.jsonText)" }.joined(separator: "\n") } }
}
