package import FleetProtocol

/// The app's keys: the agent gives and takes them at once, whatever the delegate is called for at that moment.
extension AppSession {
    mutating func received(_ keys: AppKeys?) {
        guard connection == .open else { return violation("keys before the welcome") }
        self.keys = keys
    }

    /// A person uses the app: the agent is told where that keeps apps unlocked.
    package mutating func used() -> [Effect] {
        guard phase == .ready, connection == .open, autoLock != nil else { return [] }
        effects.append(.send(.used))
        return flush()
    }

    /// The keys, while all of it holds: the app is ready, its agent has given it some, and it has been told so. That comes
    /// before the word that it is authorized, which is the last of a gain.
    package func usableKeys() throws(SecureFileError) -> AppKeys {
        guard phase == .ready else {
            throw SecureFileError(.noKeys, "AppConnect is \(isStopped ? "stopped" : "not ready yet")")
        }
        guard properties.availability == .available else {
            let isAuthorized = if case .auth(.authorized, _) = properties[.auth] { true } else { false }
            throw SecureFileError(
                .noKeys, isAuthorized ? "the app's secure services are unavailable" : "the app is not authorized")
        }
        guard let keys else {
            throw SecureFileError(
                .noKeys, "the agent of this device has given no keys, has taken them back, or cannot be reached")
        }
        return keys
    }

    package func derivedKey(_ scope: AppKeys.Scope, _ identifier: String) throws(SecureFileError) -> [UInt8] {
        guard !identifier.isEmpty else { throw SecureFileError(.invalidArgument, "the identifier of a key is empty") }
        return try usableKeys().derivedKey(scope, identifier)
    }
}
