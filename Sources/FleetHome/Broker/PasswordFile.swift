import CryptoExtras
import FleetProtocol
import Foundation

/// Mosquitto's password file: a line `user:$7$iterations$salt$hash` for each user.
struct PasswordFile: Hashable, Sendable {
    private var hashes: [String: String] = [:]

    init() {}

    init(text: String) {
        // A person's editor may have ended lines with more, which Mosquitto passes over.
        for line in text.split(whereSeparator: \.isNewline) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            hashes[String(line[..<colon])] = String(line[line.index(after: colon)...])
        }
    }

    /// The lines, sorted by user: the same users give the same text.
    var text: String { hashes.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)\n" }.joined() }

    mutating func set(_ credentials: Credentials) throws {
        hashes[credentials.user.text] = try Self.hash(credentials.password)
    }

    func contains(_ user: User) -> Bool { hashes[user.text] != nil }

    mutating func remove(_ user: User) { hashes[user.text] = nil }

    /// PBKDF2 with SHA-512, as mosquitto_passwd makes it. Its few iterations are no weakness here: the passwords are
    /// random, with 192 bits.
    private static func hash(_ password: String) throws -> String {
        let iterations = 101
        var generator = SystemRandomNumberGenerator()
        let salt = (0..<12).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let key = try KDF.Insecure.PBKDF2.deriveKey(
            from: Array(password.utf8), salt: salt, using: .sha512, outputByteCount: 64,
            unsafeUncheckedRounds: iterations)
        let hash = key.withUnsafeBytes { Data($0) }
        return "$7$\(iterations)$\(Data(salt).base64EncodedString())$\(hash.base64EncodedString())"
    }
}
