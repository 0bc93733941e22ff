package import Crypto

/// The secrets of an app at one device, from which the keys of what it stores are derived. Overwritten when the last copy
/// goes; never in a text.
package struct AppKeys: Hashable, Sendable, CustomStringConvertible {
    /// The app's alone: destroyed when it is retired.
    package let app: SymmetricKey
    /// Of all apps of the device.
    package let shared: SymmetricKey

    package static let size = 32

    package init(app: SymmetricKey, shared: SymmetricKey) {
        self.app = app
        self.shared = shared
    }

    package init(app: [UInt8], shared: [UInt8]) {
        self.init(app: SymmetricKey(data: app), shared: SymmetricKey(data: shared))
    }

    package enum Scope: String, CaseIterable, Hashable, Sendable { case app, shared }

    /// 32 bytes for what the app calls `identifier`, by HKDF (RFC 5869) with SHA-256: no salt, and as info `fleetbus app key` or
    /// `fleetbus shared key`, a zero byte and the identifier in UTF-8.
    package func derivedKey(_ scope: Scope, _ identifier: String) -> [UInt8] {
        derived(scope, "key", identifier).withUnsafeBytes { Array($0) }
    }

    /// That of secure files: the info is `fleetbus app files`, or `fleetbus shared files`, a zero byte and the group's name.
    package func filesKey(_ scope: Scope, group: String) -> SymmetricKey { derived(scope, "files", group) }

    /// That of what is copied under the policy `secureCopy`, for all apps of the device: the info is
    /// `fleetbus shared pasteboard` and a zero byte.
    package var pasteboardKey: SymmetricKey { derived(.shared, "pasteboard", "") }

    private func derived(_ scope: Scope, _ kind: String, _ name: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: scope == .app ? app : shared,
            info: Array("fleetbus \(scope.rawValue) \(kind)\0\(name)".utf8), outputByteCount: Self.size)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(app.bitCount) }

    package var description: String { "keys that are not shown" }
}

extension SymmetricKey: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        let bytes = try Binary(from: &reader).bytes
        guard bytes.count == AppKeys.size else {
            throw FleetProtocolError(.value, "a key has \(AppKeys.size) bytes, and this has \(bytes.count)")
        }
        self.init(data: bytes)
    }

    package func write(to writer: inout JSONWriter) {
        withUnsafeBytes { bytes in writer.value(Base64URL.encode(bytes)) }
    }
}
