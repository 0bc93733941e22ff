internal import CLinux
import FleetProtocol
import Glibc

/// A descriptor of a regular file: whole reads and writes at an offset.
struct RawFile {
    let descriptor: Int32
    /// For people.
    let path: String
    /// For tests: what changes the file, in this order.
    let observer: Observer?

    typealias Observer = @Sendable (Change) -> Void

    enum Change: Hashable, Sendable {
        case write([UInt8], at: Int64)
        case truncate(Int64)
        /// All before it is on the disk when this has returned.
        case sync
    }

    init(opening path: String, _ flags: Int32, observer: Observer? = nil) throws {
        try Self.check(path)
        // Opening a pipe would wait for its other end.
        descriptor = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
        self.path = path
        self.observer = observer
        guard descriptor >= 0 else {
            guard errno != EISDIR, errno != ENXIO else { throw Self.notRegular(path) }
            throw SecureFileError(failed: "open \(path)")
        }
        do {
            guard try status().st_mode & S_IFMT == S_IFREG else { throw Self.notRegular(path) }
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    private static func check(_ path: String) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw SecureFileError(.invalidArgument, "the path of a file is empty, or has a zero byte")
        }
    }

    private static func notRegular(_ path: String) -> SecureFileError {
        SecureFileError(.regularFileOnly, "\(path) is no regular file, and no other can be a secure one")
    }

    func status() throws -> stat {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { throw SecureFileError(failed: "look at \(path)") }
        return info
    }

    /// The bytes from `offset` on, fewer at the end of the file.
    func read(_ count: Int, at offset: Int64) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            while done < count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[done...])
                let read = pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
                if read < 0, errno == EINTR { continue }
                guard read >= 0 else { throw SecureFileError(failed: "read \(path)") }
                if read == 0 { return }
                done += read
            }
        }
    }

    func write(_ bytes: [UInt8], at offset: Int64) throws {
        observer?(.write(bytes, at: offset))
        var done = 0
        while done < bytes.count {
            let written = bytes[done...].withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset) + off_t(done))
            }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw SecureFileError(failed: "write \(path)") }
            done += written
        }
    }

    func truncate(to length: Int64) throws {
        observer?(.truncate(length))
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw SecureFileError(failed: "cut \(path)") }
    }

    /// Has room for these bytes, as zeros, or throws.
    func allocate(from start: Int64, to end: Int64) throws {
        observer?(.truncate(end))
        var error = EINTR
        while error == EINTR { error = posix_fallocate(descriptor, off_t(start), off_t(end - start)) }
        guard error == 0 else {
            errno = error
            throw SecureFileError(failed: "make \(path) longer")
        }
    }

    /// As far as its user may.
    func take(modeOf other: stat) {
        _ = fchown(descriptor, uid_t.max, other.st_gid)
        _ = fchmod(descriptor, other.st_mode & 0o777)
    }

    /// Throws when the disk has less room than that: before anything is written, and not in the middle of it.
    func checkRoom(for bytes: Int64) throws {
        var info = statvfs()
        guard fstatvfs(descriptor, &info) == 0 else { throw SecureFileError(failed: "look for room for \(path)") }
        let (room, overflow) = UInt64(info.f_bavail).multipliedReportingOverflow(by: UInt64(info.f_frsize))
        // Of no blocks at all is told by file systems that do not say: a tmpfs without a limit, say.
        guard info.f_blocks == 0 || overflow || bytes < 0 || UInt64(bytes) <= room else {
            errno = ENOSPC
            throw SecureFileError(failed: "make \(path) longer by \(bytes) bytes")
        }
    }

    func sync() throws {
        guard fdatasync(descriptor) == 0 else { throw SecureFileError(failed: "sync \(path)") }
        observer?(.sync)
    }

    /// How long others may keep it; whoever has been stopped in the middle of a call would do so for ever.
    static let patience = Duration.seconds(30)
    /// In microseconds: short, since who uses it again and again leaves it for moments only.
    private static let pause: UInt32 = 500

    /// Waits until no other process, or other ``SecureFile``, uses it in a way that this one must not see. Throws with
    /// `EWOULDBLOCK` when that takes too long, not counting while the machine sleeps: the other one does, too.
    func lock(isExclusive: Bool, atMost patience: Duration = RawFile.patience) throws {
        let deadline = SuspendingClock.now + patience
        while flock(descriptor, (isExclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0 {
            guard [EINTR, EWOULDBLOCK].contains(errno) else { throw SecureFileError(failed: "lock \(path)") }
            guard SuspendingClock.now < deadline else {
                let what = "lock \(path), which has been in use elsewhere for \(patience)"
                errno = EWOULDBLOCK
                throw SecureFileError(failed: what)
            }
            usleep(Self.pause)
        }
    }

    func unlock() { flock(descriptor, LOCK_UN) }
    func close() { Glibc.close(descriptor) }

    /// In the folder of `path`, and hidden.
    static func temporaryPath(for path: String) -> String { folder(of: path) + "/.fleetbus-\(RandomID.random())" }

    /// From the root on, so that it is the same file wherever the process goes. As it is where that way is closed.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let bytes = getcwd(nil, 0) else { return path }
        defer { free(bytes) }
        guard access(bytes, X_OK) == 0, let folder = String(validatingCString: bytes) else { return path }
        return "\(folder)/\(path)"
    }

    static func name(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[path.utf8.index(after: $0)...]) } ?? path
    }

    /// By bytes: to a `Character` a slash may belong to what follows it.
    static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func rename(_ path: String, to other: String, isReplacing: Bool) throws {
        for path in [path, other] { try check(path) }
        if isReplacing {
            guard Glibc.rename(path, other) == 0 else { throw SecureFileError(failed: "rename \(path) to \(other)") }
        } else {
            guard isRenamed(path, toNew: other) else {
                throw SecureFileError(failed: "give \(path) the name \(other)")
            }
        }
    }

    /// False, with errno `EEXIST`, when there is something. Where the file system knows no such renaming the file has both
    /// names for a moment, and what is put in its old place meanwhile may be taken away with that.
    static func isRenamed(_ path: String, toNew other: String) -> Bool {
        if fleetbus_rename_to_new(path, other) == 0 { return true }
        return [EINVAL, ENOSYS].contains(errno) && link(path, other) == 0 && unlink(path) == 0
    }

    /// Makes durable what a folder lists.
    static func syncFolder(of path: String) throws {
        let folder = folder(of: path)
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SecureFileError(failed: "open the folder \(folder)") }
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SecureFileError(failed: "sync the folder \(folder)") }
    }
}
