import Crypto
import Glibc
import Synchronization

/// A file whose content is encrypted on the disk, open for reading, or for reading and writing, at any place.
///
/// It is encrypted with a key that lives with the app's: once that is destroyed, nothing reads the file. Whoever reads it with
/// other means sees ciphertext, and its length.
///
/// What a call has written is on the disk when it returns. Whatever ends the process, or the power, meanwhile: the file has
/// what was there before, or what was written, of each MiB of a longer write. Several processes, and several
/// of these in one, may use a file at the same time; each call is one step to the others. Any thread may call. A call waits for
/// 30 seconds at most until others leave the file to it, and then throws, with errno `EWOULDBLOCK`: one of them may have been
/// stopped.
///
/// A call fails with `noKeys` while secure services are unavailable, and leaves the file as it was; the file stays open.
public final class SecureFile: Sendable {
    /// What an open file is used for.
    public enum Access: Sendable {
        case reading
        case readingAndWriting
    }

    /// A file holds at most so many bytes: 1 TiB.
    public static let maximumSize = SecureFormat.maximumSize

    private let place: Mutex<Place>
    private let access: Access
    private let key: FileKey

    private struct Place {
        /// Nil when it is closed.
        var file: RawFile?
        var offset: Int64 = 0
    }

    init(_ path: String, _ access: Access, key: FileKey, observer: RawFile.Observer? = nil) throws {
        _ = try key.current()
        let file = try RawFile(opening: path, access == .reading ? O_RDONLY : O_RDWR, observer: observer)
        self.access = access
        self.key = key
        place = Mutex(Place(file: file))
        do {
            try withFile(isExclusive: false) { _, _ in }
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// Closes it. A second call does nothing; what uses the file throws `invalidArgument` from then on.
    public func close() {
        place.withLock { place in
            place.file?.close()
            place.file = nil
        }
    }

    // MARK: Where it is

    /// How many bytes are in it.
    public var size: Int64 { get throws { try withFile(isExclusive: false) { content, _ in content.size } } }

    /// Where ``read(upToCount:)`` and ``write(_:)`` go on, in bytes from the beginning. At first 0.
    public var offset: Int64 { place.withLock { $0.offset } }

    /// Goes on elsewhere; may be behind the end.
    public func seek(to offset: Int64) throws {
        try Self.check(offset)
        place.withLock { $0.offset = offset }
    }

    /// Goes on at the end, which is returned.
    @discardableResult
    public func seekToEnd() throws -> Int64 {
        try withFile(isExclusive: false) { content, offset in
            offset = content.size
            return offset
        }
    }

    // MARK: Reading

    /// The next bytes: `count`, or fewer where the file ends; none at its end.
    public func read(upToCount count: Int) throws -> [UInt8] {
        try withFile(isExclusive: false) { content, offset in
            let bytes = try content.read(count, at: offset)
            offset += Int64(bytes.count)
            return bytes
        }
    }

    /// All from here to the end.
    public func readToEnd() throws -> [UInt8] { try read(upToCount: .max) }

    /// The bytes from `offset` on: `count`, or fewer where the file ends. Where ``read(upToCount:)`` goes on stays.
    public func read(upToCount count: Int, at offset: Int64) throws -> [UInt8] {
        try Self.check(offset)
        return try withFile(isExclusive: false) { content, _ in try content.read(count, at: offset) }
    }

    /// The next bytes in as many parts as there are counts, as `readv` has them: where the file ends, the parts from there on
    /// are shorter or empty. All of it is one step to others.
    public func read(upToCounts counts: [Int]) throws -> [[UInt8]] {
        var total = 0
        for count in counts {
            guard count >= 0 else { throw SecureFileError(.invalidArgument, "\(count) bytes cannot be read") }
            total = total.addingReportingOverflow(count).overflow ? .max : total + count
        }
        var rest = try read(upToCount: total)[...]
        return counts.map { count in
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
    }

    // MARK: Writing

    /// Writes here, and goes on behind it. What is between the end of the file and here becomes zeros.
    public func write(_ bytes: some Collection<UInt8>) throws {
        let bytes = try SecureContent.bytes(bytes)
        try withFile(isExclusive: true) { content, offset in
            try content.write(bytes, at: offset)
            offset += Int64(bytes.count)
        }
    }

    /// Writes these parts, one behind the other, as `writev` does: one step to others.
    public func write(parts: [[UInt8]]) throws { try write(Array(parts.joined())) }

    /// Writes from `offset` on. Where ``write(_:)`` goes on stays.
    public func write(_ bytes: some Collection<UInt8>, at offset: Int64) throws {
        try Self.check(offset)
        let bytes = try SecureContent.bytes(bytes)
        try withFile(isExclusive: true) { content, _ in try content.write(bytes, at: offset) }
    }

    /// Makes it `size` bytes long: cuts it, or appends zeros.
    public func truncate(to size: Int64) throws {
        guard size >= 0 else {
            throw SecureFileError(.negativeFileLength, "a file cannot be \(size) bytes long")
        }
        try withFile(isExclusive: true) { content, _ in try content.truncate(to: size) }
    }

    // MARK: The file

    private static func check(_ offset: Int64) throws {
        guard offset >= 0 else { throw SecureFileError(.negativeFileLength, "the offset \(offset) is below zero") }
    }

    /// Calls `body` with what is in the file now and with the offset, while nobody else changes it.
    func withFile<Value: Sendable>(
        isExclusive: Bool, _ body: (inout SecureContent, inout Int64) throws -> Value
    ) throws -> Value {
        try place.withLock { place in
            guard let file = place.file else {
                throw SecureFileError(.invalidArgument, "the file has been closed")
            }
            guard !isExclusive || access == .readingAndWriting else {
                throw SecureFileError(.invalidArgument, "\(file.path) is open for reading alone")
            }
            try file.lock(isExclusive: isExclusive)
            defer { file.unlock() }
            guard try !isExclusive || file.status().st_nlink > 0 else {
                throw SecureFileError(
                    .invalidArgument, "\(file.path) has been removed, or replaced by another file, since it was opened")
            }
            var content = try SecureContent(file, key)
            return try body(&content, &place.offset)
        }
    }
}

/// The key of an app's files, or of those of a group of apps: asked for at each use, since it can be taken away.
struct FileKey: Sendable {
    let current: @Sendable () throws -> SymmetricKey
}
