import CryptoExtras
package import FleetProtocol
import Foundation

/// Each takes some tens of milliseconds and 32 MiB, on purpose, and fails where there is no memory for that.
extension CodeHash {
    package init(of text: String) throws {
        var random = SystemRandomNumberGenerator()
        let salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let (n, r, p): (Int64, Int64, Int64) = (32_768, 8, 1)
        self.init(salt: salt, hash: try Self.derive(text, salt, n, r, p), n: n, r: r, p: p)
    }

    package func isOf(_ text: String) throws -> Bool {
        let derived = try Self.derive(text, salt, n, r, p)
        return zip(derived, hash).reduce(UInt8(derived.count ^ hash.count)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private static func derive(
        _ text: String, _ salt: [UInt8], _ n: Int64, _ r: Int64, _ p: Int64
    ) throws -> [UInt8] {
        try KDF.Scrypt.deriveKey(
            from: Data(text.utf8), salt: Data(salt), outputByteCount: 32, rounds: Int(n), blockSize: Int(r),
            parallelism: Int(p)
        ).withUnsafeBytes { Array($0) }
    }
}
