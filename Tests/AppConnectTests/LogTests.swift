import AppConnect
import FleetProtocol
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

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

    private func levels(_ folder: String) throws {
        let lines = Lines()
        let app = AppConnect()
        let delegate = RecordingApp()
        app.delegate = delegate
        var options = AppConnect.Options(app: AppID(unchecked: "a"), socket: "/tmp/no-such.sock")
        options.dataFolder = folder
        options.logger = Logger(label: "test") { _ in Handler(lines: lines) }
        try app.start(options: options)
        for level in LogLevel.allCases { app.log(level, "hello") }
        app.stop()
        app.log(.error, "still legal")
        #expect(
            lines.all.withLock { $0 } == [
                "error error: hello", "warning warning: hello", "notice status: hello", "error error: still legal",
            ])
        withExtendedLifetime(delegate) {}
    }
}
