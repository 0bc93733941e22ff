import FleetProtocol
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import AppConnect

@Suite("The log")
struct LogTests {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.critical
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) { lines.all.withLock { $0.append("\(event.level) \(event.message)") } }
    }

    @Test("has what is not above the app's level, with the level's name before it, whatever the logger's own level")
    func levels() async throws {
        try await withTemporaryFolder { folder in try levels(folder.path) }
    }

    @Test("is in a file, too, which begins anew at a megabyte; twenty are kept, and nothing else is removed")
    func file() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/app.log"
            func names() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("app.log") }
                    .sorted()
            }
            try Data("not mine".utf8).write(to: URL(fileURLWithPath: path + ".notes"))
            let file = try LogFile(path: path)
            var time = Timestamp(milliseconds: 1_700_000_000_000)
            file.write(.status, "one\ntwo\r\nthree\rfour", at: time)
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text == "2023-11-14T22:13:20.000Z status: one\n    two\n    three\n    four\n")
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            let line = String(repeating: "x", count: LogFile.size / 2)
            for _ in 0..<50 {
                time.milliseconds += 1_000
                file.write(.debug, line, at: time)
            }
            #expect(try names().count == LogFile.count + 1)
            #expect(try names().first == "app.log" && names().last == "app.log.notes")
            for name in try names() {
                let size = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/\(name)")[.size] as? Int
                #expect(size ?? 0 <= LogFile.size)
            }
            // Somebody has taken the newest away.
            unlink(path)
            for _ in 0..<3 { file.write(.debug, line, at: time) }
            #expect(try names().contains("app.log"), "it does not go on for ever in a file that nobody sees")
            // Another process goes on with the newest.
            let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
            try LogFile(path: path).write(.error, "again", at: time)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == size + 38)
        }
    }

    @Test("in files whose clock goes back: what is written now is kept, and what lies ahead goes first")
    func clockSetBack() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/app.log"
            func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
            // As a version before this one has named it.
            try Data().write(to: URL(fileURLWithPath: path + ".2023-11-14T22:13:20.000Z"))
            let file = try LogFile(path: path)
            let line = String(repeating: "x", count: LogFile.size / 2)
            func write(_ count: Int, from seconds: Int64) {
                for number in 0..<Int64(count) {
                    file.write(.debug, line, at: Timestamp(milliseconds: (seconds + number) * 1_000))
                }
            }
            write(2 * LogFile.count, from: 1_700_000_001)
            #expect(try names().allSatisfy { !$0.contains(":") })
            write(6, from: 10)
            #expect(try names().count == LogFile.count)
            #expect(try names().count { $0.hasPrefix("app.log.1970") } >= 5)
        }
    }

    @Test("in a file that cannot be, is a mistake that start names")
    func badFile() async throws {
        try await withTemporaryFolder { folder in
            #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
            for path in ["", folder.path, folder.path + "/pipe", folder.path + "/none/app.log", "a\0b", "/dev/null"] {
                #expect { try LogFile(path: path) } throws: { ($0 as? AppConnectError)?.code == .invalidOptions }
            }
        }
    }

    @Test("in a file whose name has no room for the time is such a mistake, too")
    func longName() async throws {
        try await withTemporaryFolder { folder in
            let longest = String(repeating: "x", count: Int(NAME_MAX) - LogFile.endingSize)
            #expect { try LogFile(path: "\(folder.path)/\(longest)x") } throws: {
                ($0 as? AppConnectError)?.code == .invalidOptions
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
            let file = try LogFile(path: "\(folder.path)/\(longest)")
            let line = String(repeating: "x", count: LogFile.size / 2)
            for _ in 0..<2 { file.write(.debug, line, at: Timestamp(milliseconds: 1_700_000_000_000)) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 2)
        }
    }

    @Test(
        "has no half of a line for which the disk has no room",
        .enabled(if: SmallDisk.isPossible, "needs root, who may mount"))
    func fullDisk() async throws {
        try await withTemporaryFolder { folder in
            try await withFixture { fixture in
                let disk = try SmallDisk(fixture, at: folder.appending(path: "small"), kilobytes: 64)
                let path = disk.folder.appending(path: "app.log").path()
                let file = try LogFile(path: path)
                let time = Timestamp(milliseconds: 1_700_000_000_000)
                file.write(.status, "one", at: time)
                try disk.fill()
                // The page that has the first one has room for a part of it.
                file.write(.status, String(repeating: "x", count: 5_000), at: time)
                try disk.makeRoom()
                file.write(.status, "two", at: time)
                let text = try String(contentsOfFile: path, encoding: .utf8)
                #expect(text == "2023-11-14T22:13:20.000Z status: one\n2023-11-14T22:13:20.000Z status: two\n")
            }
        }
    }

    private func levels(_ folder: String) throws {
        let lines = Lines()
        let app = AppConnect()
        let delegate = RecordingApp()
        app.delegate = delegate
        var options = AppConnect.Options(app: AppID(unchecked: "a"), socket: "/tmp/no-such.sock")
        options.dataFolder = folder
        options.logger = Logger(label: "test") { _ in Handler(lines: lines) }
        options.logFile = folder + "/app.log"
        try app.start(options: options)
        for level in LogLevel.allCases { app.log(level, "hello") }
        app.stop()
        app.log(.error, "still legal")
        #expect(
            lines.all.withLock { $0 } == [
                "error error: hello", "warning warning: hello", "notice status: hello", "error error: still legal",
            ])
        let file = try String(contentsOfFile: folder + "/app.log", encoding: .utf8)
        #expect(
            file.split(separator: "\n").map { $0.drop { $0 != " " } } == [
                " error: hello", " warning: hello", " status: hello", " error: still legal",
            ])
        withExtendedLifetime(delegate) {}
    }
}
