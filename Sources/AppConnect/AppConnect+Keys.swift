import FleetProtocol
import Synchronization

/// Keys for what the app stores. They live with the app's key, which the agent of the device keeps: when the app is retired
/// that is destroyed, also while the app is not running, and what was encrypted can never be read again. A later authorization
/// begins with new keys.
///
/// The same identifier gives the same key at every launch, until then. Ask for a key when it is needed, and forget it when
/// ``secureServicesAvailability`` falls: the library forgets its own then.
extension AppConnect {
    /// A key of this app alone: 32 bytes.
    ///
    /// - Parameter identifier: What it is for, such as `database`; not empty. Of another identifier the key is another.
    /// - Throws: ``SecureFileError``: `noKeys` while secure services are unavailable, also for a moment before
    ///   ``secureServicesAvailability`` says so; `invalidArgument` for an empty identifier.
    public func derivedAppKey(identifier: String) throws -> [UInt8] { try derivedKey(.app, identifier) }

    /// A key that every authorized app of this device gets for the same identifier: 32 bytes. It outlives the retirement of
    /// one app, and goes when no app of the device has keys any more.
    ///
    /// - Throws: As ``derivedAppKey(identifier:)``.
    public func derivedSharedKey(identifier: String) throws -> [UInt8] { try derivedKey(.shared, identifier) }

    private func derivedKey(_ scope: AppKeys.Scope, _ identifier: String) throws -> [UInt8] {
        try state.withLock { try $0.session.derivedKey(scope, identifier) }
    }
}
