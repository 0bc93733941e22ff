import FleetProtocol
import Foundation
import Testing

/// The repository's `schemas/`, and the validator in it.
enum SchemaFolder {
    static let url = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "schemas")

    /// Set to write examples and vectors instead of comparing them.
    static let isWriting = ProcessInfo.processInfo.environment["FLEETBUS_WRITE_EXAMPLES"] == "1"

    struct File: Sendable, CustomTestStringConvertible {
        let schema: String
        let name: String
        let bytes: [UInt8]
        var testDescription: String { "\(schema)/\(name)" }
    }

    /// The files of `folder`, each in a folder that is named like its schema.
    static func files(in folder: String) throws -> [File] {
        let root = url.appending(path: folder)
        var files: [File] = []
        for schema in try FileManager.default.contentsOfDirectory(atPath: root.path()).sorted() {
            for name in try FileManager.default.contentsOfDirectory(atPath: root.appending(path: schema).path())
                .sorted()
            {
                let bytes = [UInt8](try Data(contentsOf: root.appending(path: "\(schema)/\(name)")))
                files.append(File(schema: schema, name: name, bytes: bytes))
            }
        }
        return files
    }

    /// Runs `validate.py`; its lines, and whether it found nothing wrong.
    static func validate(_ arguments: String...) throws -> (lines: [String], isValid: Bool) {
        let python = try #require(
            ProcessInfo.processInfo.environment["FLEETBUS_PYTHON"],
            "FLEETBUS_PYTHON names the Python with the JSON Schema validator: run deploy/test, which installs it")
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments = [url.appending(path: "validate.py").path()] + arguments
        process.environment = ["LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
        return (lines, process.terminationStatus == 0)
    }

    /// Calls `body` with a folder that is gone afterwards.
    static func withTemporaryFolder<Value>(_ body: (URL) throws -> Value) throws -> Value {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fleetbus-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        return try body(folder)
    }
}

/// JSON as a value: members in any order, 1.0 as 1.
struct Canonical: Equatable, CustomStringConvertible {
    let description: String

    init(_ json: [UInt8]) throws {
        description = Self.sorted(try JSONValue(json: json, limit: 1 << 20)).jsonText
    }

    private static func sorted(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let members):
            .object(members.map { JSONValue.Member($0.name, sorted($0.value)) }.sorted { $0.name < $1.name })
        case .array(let elements): .array(elements.map(sorted))
        case .double(let number) where number == number.rounded() && abs(number) < 1e15: .integer(Int64(number))
        case .null, .bool, .integer, .double, .string: value
        }
    }
}
