import AppConnect
import Dispatch
import FleetProtocol
import Synchronization
import TestSupport

/// A delegate that keeps what it was told; `during` runs within each callback.
final class RecordingApp: ConfigDelegate, PrintPolicyDelegate, BlockedAttemptDelegate {
    private let told = Mutex<[String]>([])
    private let count = DispatchSemaphore(value: 0)
    private let during: @Sendable (AppConnect, String) -> Void

    init(during: @escaping @Sendable (AppConnect, String) -> Void = { _, _ in }) { self.during = during }

    var all: [String] { told.withLock { $0 } }

    /// The next that it is told, in order.
    func next() throws -> String {
        guard count.wait(timeout: .now() + 120) == .success else { throw TestFailure("nothing called: \(all)") }
        return told.withLock { told in
            let index = told.firstIndex { !$0.hasPrefix("\u{2713}") } ?? 0
            let text = told[index]
            told[index] = "\u{2713}" + text
            return text
        }
    }

    private func note(_ what: String, _ appConnect: AppConnect) {
        told.withLock { $0.append(what) }
        count.signal()
        during(appConnect, what)
    }

    func appConnectIsReady(_ appConnect: AppConnect) { note("ready", appConnect) }

    func appConnect(_ appConnect: AppConnect, authStateChanged state: AuthState, message: String) {
        let isEqual = (try? appConnect.authState) == state && (try? appConnect.authMessage) == message
        note("auth \(state)\(isEqual ? "" : " differs")", appConnect)
    }

    func appConnect(_ appConnect: AppConnect, configChanged config: [String: String]) {
        let isEqual = (try? appConnect.config) == config
        note("config \(config["n"] ?? "-")\(isEqual ? "" : " differs")", appConnect)
    }

    func appConnect(_ appConnect: AppConnect, printPolicyChanged policy: PrintPolicy) {
        note("print \(policy)", appConnect)
    }

    func appConnect(_ appConnect: AppConnect, copyAttemptedWhenUnauthorized policy: PasteboardPolicy) {
        note("copy blocked", appConnect)
    }
}
