import Crypto
import FleetProtocol

/// How a secure file stands on the disk: a header, then chunks that are encrypted one by one, so that any part can be read and
/// written by itself.
///
/// | bytes | are |
/// |---|---|
/// | 0–3 | `FBSF` |
/// | 4 | the version, 1 |
/// | 5–7 | zero |
/// | 8–23 | random, of this file |
/// | 24–59 | the length in bytes of what is in it (8 bytes, big-endian), encrypted |
/// | 60–63 | zero |
/// | 64– | chunks of 4,096 bytes, encrypted; the last one may be shorter |
///
/// Encrypted is with AES-256-GCM: 12 random bytes, the ciphertext, the tag of 16. Authenticated with it is what it is: `size`,
/// or `chunk` and its number from 0 (8 bytes, big-endian), or `redo` and the encrypted length that there was before. The key is
/// HKDF-SHA256 of the key for files, with the file's 16 random bytes as salt and `fleetbus secure file` as info.
///
/// A change that writes over what is there is written behind it first, as one record that ends with `FBSFredo` and the
/// record's length (8 bytes, big-endian): whoever opens the file afterwards finishes what a crash has left half done. The header
/// stands within one sector, which is written at once or not at all.
struct SecureFormat {
    private let key: SymmetricKey

    static let magic = Array("FBSF".utf8) + [1, 0, 0, 0]
    static let headerSize = 64
    static let sizeOffset = 24
    static let chunkSize = 4_096
    static let overhead = 28
    /// Of the encrypted length.
    static let sealedSize = 8 + overhead
    static let maximumSize: Int64 = 1 << 40
    /// So much of a write is one change.
    static let piece = 1 << 20
    private static let redoMagic = Array("FBSFredo".utf8)
    static let redoEnd = redoMagic.count + 8

    /// - Parameter id: The 16 random bytes of the file.
    init(_ key: SymmetricKey, id: some Collection<UInt8>) {
        self.key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, salt: Array(id), info: Array("fleetbus secure file".utf8),
            outputByteCount: AppKeys.size)
    }

    /// A file of nothing.
    static func emptyFile(_ key: SymmetricKey) throws -> [UInt8] {
        let id = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
        let header = try SecureFormat(key, id: id).header(size: 0)
        return magic + id + header + Array(repeating: 0, count: headerSize - sizeOffset - header.count)
    }

    /// What a change makes of a file.
    struct Change: Hashable {
        var size: Int64
        /// The encrypted size, as it stands in the header.
        var header: [UInt8]
        /// Encrypted chunks, by their numbers.
        var chunks: [Int64: [UInt8]]
    }

    // MARK: Places

    static func chunkCount(_ size: Int64) -> Int64 { (size + Int64(chunkSize) - 1) / Int64(chunkSize) }

    /// How many bytes of a file of `size` are in a chunk.
    static func length(of chunk: Int64, in size: Int64) -> Int {
        Int(min(Int64(chunkSize), size - chunk * Int64(chunkSize)))
    }

    static func offset(of chunk: Int64) -> Int64 { Int64(headerSize) + chunk * Int64(chunkSize + overhead) }

    /// Where a file of `size` ends on the disk.
    static func end(_ size: Int64) -> Int64 { Int64(headerSize) + size + chunkCount(size) * Int64(overhead) }

    // MARK: Encryption

    func header(size: Int64) throws -> [UInt8] { try seal(Self.bytes(size), "size") }

    func size(in header: some Collection<UInt8>) throws -> Int64 {
        let size = Self.integer(try open(header, "size"))
        guard (0...Self.maximumSize).contains(size) else { throw Damage() }
        return size
    }

    func seal(_ bytes: [UInt8], chunk: Int64) throws -> [UInt8] { try seal(bytes, "chunk", Self.bytes(chunk)) }
    func open(_ sealed: [UInt8], chunk: Int64) throws -> [UInt8] { try open(sealed, "chunk", Self.bytes(chunk)) }

    /// It is not what this key has encrypted, as what it is asked for.
    struct Damage: Error {}

    private func seal(_ bytes: [UInt8], _ what: String, _ more: [UInt8] = []) throws -> [UInt8] {
        guard let sealed = try AES.GCM.seal(bytes, using: key, authenticating: Array(what.utf8) + more).combined else {
            throw Damage()
        }
        return Array(sealed)
    }

    private func open(_ sealed: some Collection<UInt8>, _ what: String, _ more: [UInt8] = []) throws -> [UInt8] {
        guard sealed.count >= Self.overhead,
            let box = try? AES.GCM.SealedBox(combined: Array(sealed)),
            let bytes = try? AES.GCM.open(box, using: key, authenticating: Array(what.utf8) + more)
        else { throw Damage() }
        return Array(bytes)
    }

    // MARK: What is still to be done

    /// A change as it is written behind the chunks before it is made.
    ///
    /// - Parameter header: The encrypted length that there is before: the record counts for that file alone, and not for what
    ///   it becomes later.
    func redo(_ change: Change, where header: [UInt8]) throws -> [UInt8] {
        var plain = change.header
        for (number, chunk) in change.chunks.sorted(by: { $0.key < $1.key }) {
            plain += Self.bytes(number) + Self.bytes(Int64(chunk.count)) + chunk
        }
        let record = try header + seal(plain, "redo", header)
        return record + Self.redoMagic + Self.bytes(Int64(record.count))
    }

    /// How long the record is that ends with these bytes; nil when none does.
    static func redoLength(endingWith end: [UInt8]) -> Int64? {
        guard end.count == redoEnd, end.starts(with: redoMagic) else { return nil }
        let length = integer(Array(end.suffix(8)))
        // Of the chunks of one piece, with what goes with each.
        return length > 0 && length <= 2 * Int64(piece) ? length : nil
    }

    /// - Parameters:
    ///   - record: Without its ending.
    ///   - present: The encrypted length that there is: that from before the change, or the change's own.
    func change(redoing record: [UInt8], where present: [UInt8]) throws -> Change {
        let before = Array(record.prefix(Self.sealedSize))
        let plain = try open(record.dropFirst(Self.sealedSize), "redo", before)
        guard plain.count >= Self.sealedSize else { throw Damage() }
        let header = Array(plain.prefix(Self.sealedSize))
        guard present == before || present == header else { throw Damage() }
        var change = Change(size: try size(in: header), header: header, chunks: [:])
        var rest = plain[header.count...]
        while !rest.isEmpty {
            guard rest.count >= 16 else { throw Damage() }
            let number = Self.integer(Array(rest.prefix(8)))
            let count = Self.integer(Array(rest.dropFirst(8).prefix(8)))
            rest = rest.dropFirst(16)
            guard number >= 0, number < Self.chunkCount(change.size), count <= rest.count,
                count == Self.length(of: number, in: change.size) + Self.overhead
            else { throw Damage() }
            change.chunks[number] = Array(rest.prefix(Int(count)))
            rest = rest.dropFirst(Int(count))
        }
        return change
    }

    private static func bytes(_ value: Int64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    private static func integer(_ bytes: [UInt8]) -> Int64 {
        bytes.count == 8 ? bytes.reduce(0) { $0 << 8 | Int64($1) } : -1
    }
}
