import Foundation
import TestSupport
import Testing

@Suite("The sample app")
struct SampleAppTests {
    @Test("ends when it is told to, also while nobody reads what it says")
    func unread() async throws {
        try await withFixture { fixture in
            let folder = try fixture.temporaryFolder()
            let output = folder.appending(path: "output").path
            #expect(mkfifo(output, 0o600) == 0)
            // For both, since opening one end waits for the other. It is full from the beginning.
            let pipe = open(output, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            try #require(pipe >= 0)
            defer { close(pipe) }
            let some = [UInt8](repeating: 0x0A, count: 4_096)
            while write(pipe, some, some.count) > 0 {}
            let process = try await fixture.process(
                program(named: "sh"),
                [
                    "-c", #"exec "$0" "$@" > '\#(output)'"#, program(named: "sample-app").path,
                    "--socket", folder.appending(path: "none.sock").path, "--app", "com.example.mail",
                    "--data", folder.appending(path: "data").path,
                ])
            try await until("it minds signals") {
                if let status = process.status { throw TestFailure("it ended with \(status): \(process.errors)") }
                return try handled(by: process.pid) & (1 << UInt64(SIGTERM - 1)) != 0
            }
            try await until("it ends") {
                process.signal(SIGTERM)
                return process.status != nil
            }
            #expect(process.status == 0)
        }
    }

    /// The signals that a process handles, a bit for each.
    private func handled(by pid: Int32) throws -> UInt64 {
        let lines = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8).split(separator: "\n")
        let line = lines.first { $0.hasPrefix("SigCgt:") }
        return line.flatMap { UInt64($0.dropFirst("SigCgt:".count).trimmingCharacters(in: .whitespaces), radix: 16) }
            ?? 0
    }
}
