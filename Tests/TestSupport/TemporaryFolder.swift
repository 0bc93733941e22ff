package import Foundation

extension Fixture {
    /// A new, empty folder that is removed at the end; its path is short enough for sockets.
    package func temporaryFolder() throws -> URL {
        let folder = try makeTemporaryFolder()
        onEnd { try? FileManager.default.removeItem(at: folder) }
        return folder
    }
}

/// Runs `body` with a new, empty folder, and removes it.
package func withTemporaryFolder<Value>(_ body: (URL) async throws -> Value) async throws -> Value {
    let folder = try makeTemporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}

func makeTemporaryFolder() throws -> URL {
    var template = Array("/tmp/fleetbus-XXXXXX".utf8CString)
    let path = template.withUnsafeMutableBufferPointer { buffer in
        buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
    }
    guard let path else { throw TestFailure("no temporary folder could be made in /tmp: errno \(errno)") }
    return URL(fileURLWithPath: path, isDirectory: true)
}
