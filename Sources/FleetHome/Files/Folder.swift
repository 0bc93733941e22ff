import FleetProtocol
import Glibc

/// A folder whose files are read and written whole. A write is atomic and durable: temporary file, fsync, rename, fsync
/// of the folder; a reader sees the old content or the new.
struct Folder: Hashable, Sendable {
    let path: String

    /// The absolute path, without links resolved.
    init(_ path: String) {
        let start = path.hasPrefix("/") ? "" : Self.current
        var parts: [Substring] = []
        for part in (start + "/" + path).split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        self.path = "/" + parts.joined(separator: "/")
    }

    func path(of name: String) -> String { path == "/" ? "/" + name : path + "/" + name }
    func folder(_ name: String) -> Folder { Folder(path(of: name)) }

    private static var current: String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        // Of a folder that is gone: what is looked for there is not found, rather than somewhere else.
        guard let text = getcwd(&buffer, buffer.count) else { return "/proc/self/cwd" }
        return String(cString: text)
    }

    /// Makes the folder (and those above it, open to all) unless it is there. Its owner and mode are set either way.
    func make(mode: mode_t = 0o700, owner: (uid: uid_t, gid: gid_t)? = nil) throws {
        var parent = ""
        for part in path.split(separator: "/").dropLast() {
            parent += "/\(part)"
            if mkdir(parent, 0o755) == 0 {
                // The umask may have closed it.
                guard chmod(parent, 0o755) == 0 else { throw unwritable(parent, "changing the mode of") }
            } else if errno != EEXIST {
                throw unwritable(parent, "making the folder")
            }
        }
        guard mkdir(path, mode) == 0 || errno == EEXIST else { throw unwritable(path, "making the folder") }
        if let owner, chown(path, owner.uid, owner.gid) != 0 { throw unwritable(path, "changing the owner of") }
        guard chmod(path, mode) == 0 else { throw unwritable(path, "changing the mode of") }
    }

    /// Says why no file could be made in the folder, if so.
    func checkWritable() throws {
        guard access(path, W_OK | X_OK) == 0 else { throw unwritable(path, "writing to") }
    }

    /// Whether it is `other` or below it, by whatever links.
    func isInside(_ other: Folder) -> Bool {
        Self.isSame(path, other.path) || parent?.isInside(other) ?? false
    }

    /// Whether two paths lead to one file.
    static func isSame(_ path: String, _ other: String) -> Bool {
        var (one, two) = (stat(), stat())
        guard stat(path, &one) == 0, stat(other, &two) == 0 else { return false }
        return (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)
    }

    /// nil where there is nothing.
    static func owner(of path: String) -> uid_t? {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_uid : nil
    }

    /// The folder that it is in; nil for the first one.
    var parent: Folder? {
        let parts = path.split(separator: "/")
        return parts.isEmpty ? nil : Folder("/" + parts.dropLast().joined(separator: "/"))
    }

    func exists(_ name: String) -> Bool { access(path(of: name), F_OK) == 0 }

    /// The names of what is in the folder, sorted; none when there is no folder.
    func names(isHiddenToo: Bool = false) throws -> [String] {
        guard let stream = opendir(path) else {
            if errno == ENOENT { return [] }
            throw FleetHomeError(.unreadable, "reading the folder \(path) failed: \(Self.reason())")
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") || isHiddenToo && name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The content of a file; `remedy` says what helps when it is not there.
    func read(_ name: String, limit: Int, remedy: String? = nil) throws -> [UInt8] {
        let file = path(of: name)
        // Opening a pipe would wait for its writer.
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { throw FleetHomeError(.missing, "\(file) is missing", remedy: remedy) }
            let isInFile = errno == ENOTDIR
            throw FleetHomeError(
                .unreadable, "reading \(file) failed: \(Self.reason())",
                remedy: isInFile
                    ? "name a fleet's folder, which fleetctl init makes"
                    : "run this as the user whom the fleet's folder belongs to")
        }
        defer { close(descriptor) }
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else {
            throw FleetHomeError(
                .malformed, "\(file) is no file", remedy: remedy ?? "put the file there that belongs there")
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1_024)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw FleetHomeError(.unreadable, "reading \(file) failed: \(Self.reason())")
            }
            bytes.append(contentsOf: chunk[..<count])
            guard bytes.count <= limit else {
                throw FleetHomeError(
                    .malformed, "\(file) is larger than \(limit) bytes",
                    remedy: remedy ?? FleetHomeError.restoreFile)
            }
        }
    }

    /// Replaces the file; nobody but its owner can read it at any moment unless `mode` says so.
    func write(
        _ bytes: [UInt8], to name: String, mode: mode_t = 0o600, owner: (uid: uid_t, gid: gid_t)? = nil
    ) throws {
        let file = path(of: name)
        let temporary = temporary(for: name)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unwritable(file, "writing") }
        var isDone = false
        defer {
            close(descriptor)
            if !isDone { unlink(temporary) }
        }
        try Self.write(bytes, to: descriptor, for: file)
        if let owner, fchown(descriptor, owner.uid, owner.gid) != 0 { throw unwritable(file, "changing the owner of") }
        guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0, rename(temporary, file) == 0 else {
            throw unwritable(file, "writing")
        }
        isDone = true
        try sync()
    }

    /// Where a file is written that is to take the place of one.
    func temporary(for name: String) -> String { path(of: ".\(name).\(getpid()).\(RandomID.random())") }

    /// Removes what writes that were cut short have left. Nobody may be writing to the folder meanwhile.
    func removeLeftovers() {
        for name in (try? names(isHiddenToo: true)) ?? [] where Self.isTemporary(name) { unlink(path(of: name)) }
    }

    /// Whether ``temporary(for:)`` has given out such a name.
    private static func isTemporary(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].isEmpty, Int32(parts[parts.count - 2]) != nil else { return false }
        return RandomID(String(parts[parts.count - 1])) != nil
    }

    /// Writes all of `bytes`; `file` is for the error.
    static func write(_ bytes: [UInt8], to descriptor: Int32, for file: String) throws {
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                throw FleetHomeError(.unwritable, "writing \(file) failed: \(reason())")
            }
            offset += count
        }
    }

    func remove(_ name: String) throws {
        guard unlink(path(of: name)) == 0 || errno == ENOENT else { throw unwritable(path(of: name), "removing") }
        try sync()
    }

    private func sync() throws {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }  // A folder that may be written but not read: the rename itself stands.
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw unwritable(path, "writing the folder") }
    }

    private func unwritable(_ path: String, _ action: String) -> FleetHomeError {
        FleetHomeError(.unwritable, "\(action) \(path) failed: \(Self.reason())")
    }

    static func reason() -> String { String(cString: strerror(errno)) }
}
