import Crypto
import FleetProtocol
import Glibc
import Synchronization

extension AppConnect {
    /// The encrypted files of this app alone. After its retirement nobody can read them any more, also if it was not running
    /// then.
    public var files: SecureFiles { SecureFiles(key(.app, "")) }

    /// Encrypted files that every authorized app of this device can read and write which knows the name of the group. They
    /// outlive the retirement of one app, and go when no app of the device has keys any more.
    ///
    /// - Throws: ``SecureFileError`` `invalidArgument` for an empty name.
    public func files(sharedBy group: String) throws -> SecureFiles {
        guard !group.isEmpty else { throw SecureFileError(.invalidArgument, "the name of a group is empty") }
        return SecureFiles(key(.shared, group))
    }

    private func key(_ scope: AppKeys.Scope, _ group: String) -> FileKey {
        FileKey { [self] in
            try state.withLock { try $0.session.usableKeys() }.filesKey(scope, group: group)
        }
    }
}

/// Files that are encrypted on the disk with a key that lives with the app's. Paths are as those of the system; a file that
/// is no secure one is left alone.
///
/// Removing a file, and looking which there are, need no key: `FileManager` does it. All throw ``SecureFileError``: `noKeys`
/// while secure services are unavailable, `badKeyOrCorruptData` for a file that was made with another key (also that
/// of the app before it was retired), or is none, or has been changed by something else; and with the `errno` of the system
/// where that refuses something. Any thread may call.
public struct SecureFiles: Sendable {
    private let key: FileKey

    init(_ key: FileKey) { self.key = key }

    /// Opens a file that is there, at its beginning.
    public func open(_ path: String, _ access: SecureFile.Access = .reading) throws -> SecureFile {
        try SecureFile(path, access, key: key)
    }

    /// Makes an empty file that its user alone can read (mode 0600), and opens it for reading and writing. Throws, with errno
    /// `EEXIST`, when there is something.
    public func create(_ path: String) throws -> SecureFile {
        try make(path, isReplacing: false) { _ in }
        return try open(path, .readingAndWriting)
    }

    /// All that is in a file.
    public func contents(of path: String) throws -> [UInt8] { try open(path).readToEnd() }

    /// Puts a file with these bytes there, or in the place of the one that is: whoever opens it, also after a crash, finds the
    /// old one or the new one, whole. The old one may be unreadable, as those from before a retirement are; throws when it
    /// is no secure file.
    public func write(_ bytes: some Collection<UInt8>, to path: String) throws {
        let bytes = try SecureContent.bytes(bytes)
        _ = try key.current()
        var replaced: stat?
        do {
            let old = try RawFile(opening: path, O_RDONLY)
            defer { old.close() }
            replaced = try old.status()
            guard try old.read(SecureFormat.magic.count, at: 0) == SecureFormat.magic else {
                throw SecureFileError(.badKeyOrCorruptData, "\(path) is no secure file, and is not replaced by one")
            }
        } catch let error as SecureFileError where error.errno == ENOENT {}
        try make(path, isReplacing: true, like: replaced) { try $0.write(bytes, at: 0) }
    }

    /// Makes a file of the same content. Throws, with errno `EEXIST`, when there is something.
    public func copy(_ path: String, to other: String) throws {
        try open(path).withFile(isExclusive: false) { source, _ in
            try make(other, isReplacing: false) { content in
                while content.size < source.size {
                    try content.write(source.read(SecureFormat.piece, at: content.size), at: content.size)
                }
            }
        }
    }

    /// Gives a file another name, on the same file system. Throws, with errno `EEXIST`, when there is something.
    public func move(_ path: String, to other: String) throws {
        try open(path).close()
        try RawFile.rename(path, to: other, isReplacing: false)
        try RawFile.syncFolder(of: other)
        try RawFile.syncFolder(of: path)
    }

    /// Whether two files have the same content.
    public func isEqual(_ path: String, _ other: String) throws -> Bool {
        try open(path).withFile(isExclusive: false) { first, _ in
            try open(other).withFile(isExclusive: false) { second, _ in
                guard first.size == second.size else { return false }
                for offset in stride(from: 0, to: first.size, by: SecureFormat.piece) {
                    let (one, two) = (
                        try first.read(SecureFormat.piece, at: offset), try second.read(SecureFormat.piece, at: offset)
                    )
                    guard one == two else { return false }
                }
                return true
            }
        }
    }

    /// How many bytes are in a file, without what encryption adds.
    public func size(of path: String) throws -> Int64 { try open(path).size }

    /// What the system knows of a file, and how much is in it.
    public func attributes(of path: String) throws -> SecureFileAttributes {
        try open(path).withFile(isExclusive: false) { content, _ in
            SecureFileAttributes(try content.file.status(), size: content.size)
        }
    }

    /// Makes a file under another name, and gives it its own when it is on the disk.
    ///
    /// - Parameter replaced: The file that gives way: the new one has its mode and its group.
    private func make(
        _ path: String, isReplacing: Bool, like replaced: stat? = nil, _ fill: (inout SecureContent) throws -> Void
    ) throws {
        let temporary = RawFile.temporaryPath(for: path)
        let file = try RawFile(opening: temporary, O_RDWR | O_CREAT | O_EXCL)
        defer { file.close() }
        do {
            try file.write(SecureFormat.emptyFile(key.current()), at: 0)
            if let replaced { file.take(modeOf: replaced) }
            var content = try SecureContent(file, key)
            try fill(&content)
            try content.confirmKey()
            try file.sync()
            try RawFile.rename(temporary, to: path, isReplacing: isReplacing)
        } catch {
            unlink(temporary)
            throw error
        }
        try RawFile.syncFolder(of: path)
    }
}
