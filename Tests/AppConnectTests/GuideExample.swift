// Of Getting-started.md, word for word, up to what an app does with it.
import AppConnect
import Synchronization

final class Mail: AppConnectDelegate, ConfigDelegate {
    private let server = Mutex<String?>(nil)

    func appConnectIsReady(_ appConnect: AppConnect) {
        // From here on every property can be read. Callbacks follow for what has changed since the last launch.
        use((try? appConnect.config) ?? [:])
        show((try? appConnect.authState) ?? .unauthorized)
    }

    func appConnect(_ appConnect: AppConnect, authStateChanged state: AuthState, message: String) {
        do {
            if state == .retired { try eraseEverything() }
            show(state, message)
            try appConnect.authStateApplied(.applied)
        } catch {
            try? appConnect.authStateApplied(.error, message: "\(error)")
        }
    }

    func appConnect(_ appConnect: AppConnect, configChanged config: [String: String]) {
        use(config)
        try? appConnect.configApplied(.applied)
    }

    private func use(_ config: [String: String]) {
        server.withLock { $0 = config["server"] }
    }
}

extension Mail {
    private func show(_ state: AuthState, _ message: String = "") {}
    private func eraseEverything() throws {}
}

/// Of Secure-files.md, line by line.
private func secureFiles(_ path: String, _ report: String, _ record: [UInt8]) throws -> ([UInt8], [UInt8], [UInt8]) {
    let files = AppConnect.shared.files
    try files.write(report.utf8, to: path)  // whole, in place of what was there
    let bytes = try files.contents(of: path)
    let file = try files.open(path, .readingAndWriting)  // or any part of it
    try file.write(record, at: 4_096)
    let header = try file.read(upToCount: 512, at: 0)
    let key = try AppConnect.shared.derivedAppKey(identifier: "database")
    return (bytes, header, key)
}
