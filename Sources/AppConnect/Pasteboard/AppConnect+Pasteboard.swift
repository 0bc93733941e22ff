import FleetProtocol
import Synchronization

/// Copying and pasting as the fleet has it. Under the pasteboard policy `authorized` what is copied can be read by whoever is at
/// the device; under `secureCopy` by its authorized apps alone, of which each reads it encrypted from the agent.
extension AppConnect {
    /// Copies out of the app, if its policies allow it: to ``Options/pasteboard``, or, where there is none, to the agent, which
    /// keeps it for the apps of the device; under `secureCopy` to the agent in any case, encrypted. It takes the place of what was
    /// copied before. The agent keeps it in memory, until it ends or the app is retired.
    ///
    /// - Returns: Whether it can be pasted now. false: the policies do not allow it, and nothing has been written; the attempt
    ///   is reported to the operators, and ``BlockedAttemptDelegate`` told.
    /// - Throws: ``AppConnectError`` before ready and after stop; `invalidContent`; `unreachable` without an agent, with one that
    ///   is older than this, while four of these are waited for, and after half a minute without an answer.
    ///   ``SecureFileError`` `noKeys` under `secureCopy` while secure services are unavailable: nothing has been written.
    public func copy(_ content: PasteboardContent) async throws -> Bool {
        let bytes = try content.encoded()
        let pasteboard = pasteboard
        let destination = try perform { try $0.destination(of: bytes, withPasteboard: pasteboard != nil) }
        switch destination {
        case .nowhere: return false
        case .device:
            pasteboard?.write(content)
            perform { $0.copy(nil).1 }
            return true
        case .agent(let item):
            guard case .done(let isDone) = await inquire({ $0.copy(item) }) else { throw Self.noPasteboard }
            if isDone { pasteboard?.write(nil) } else { try perform { try $0.refusedCopy(isSecured: item.isSecured) } }
            return isDone
        }
    }

    /// What was copied last: what stands in ``Options/pasteboard``, or else what the agent has. Pasting into an app is never
    /// restricted; what was copied under `secureCopy` is there while secure services are available.
    ///
    /// - Returns: nil when there is nothing, or nothing that this app can read.
    /// - Throws: ``AppConnectError`` before ready and after stop; `unreachable` as ``copy(_:)``.
    public func paste() async throws -> PasteboardContent? {
        try state.withLock { try $0.session.mustBeReady(for: "paste() was called") }
        if let content = pasteboard?.read() { return content }
        guard case .pasted(let item) = await inquire({ $0.paste() }) else { throw Self.noPasteboard }
        return item.flatMap { item in state.withLock { $0.session.content(of: item) } }
    }

    private var pasteboard: (any DevicePasteboard)? { state.withLock { $0.environment?.pasteboard } }

    private static var noPasteboard: AppConnectError {
        AppConnectError(.unreachable, "there is no agent that keeps a pasteboard, or it has not answered yet")
    }
}
