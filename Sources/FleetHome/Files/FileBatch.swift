import CLinux
import FleetProtocol
import Glibc

/// Files that are replaced one by one, but reach the disk together: thousands of them would otherwise wait for it
/// thousands of times. Nothing is replaced before ``commit()``.
struct FileBatch: ~Copyable {
    private struct Pending {
        let temporary: String
        let file: String
    }

    private var pending: [Pending] = []
    /// From so many on, one flush of the whole file systems is cheaper than one for each file.
    private static let many = 64

    init() {}

    mutating func write(_ bytes: [UInt8], to name: String, in folder: Folder, mode: mode_t = 0o600) throws {
        let file = folder.path(of: name)
        let temporary = folder.temporary(for: name)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.unwritable(file) }
        pending.append(Pending(temporary: temporary, file: file))
        do {
            try Folder.write(bytes, to: descriptor, for: file)
            guard fchmod(descriptor, mode) == 0 else { throw Self.unwritable(file) }
        } catch {
            close(descriptor)
            throw error
        }
        // A file system may say only here that it could not write.
        guard close(descriptor) == 0 else { throw Self.unwritable(file) }
    }

    mutating func write(_ value: some JSONWritable, to name: String, in folder: Folder) throws {
        try write(value.json + [UInt8(ascii: "\n")], to: name, in: folder)
    }

    /// Makes every file durable, and only then replaces the old ones, in the order of writing.
    mutating func commit() throws {
        try flush(pending.map(\.temporary))
        let files = pending
        while let next = pending.first {
            guard rename(next.temporary, next.file) == 0 else { throw Self.unwritable(next.file) }
            pending.removeFirst()
        }
        try flush(Array(Set(files.map { Folder($0.file + "/..").path })))
    }

    private func flush(_ paths: [String]) throws {
        var flushed: Set<dev_t> = []
        for path in paths {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Self.unwritable(path) }
            defer { close(descriptor) }
            guard paths.count >= Self.many else {
                guard fsync(descriptor) == 0 else { throw Self.unwritable(path) }
                continue
            }
            var info = stat()
            guard fstat(descriptor, &info) == 0 else { throw Self.unwritable(path) }
            guard flushed.insert(info.st_dev).inserted else { continue }
            guard fleetbus_syncfs(descriptor) == 0 else { throw Self.unwritable(path) }
        }
    }

    private static func unwritable(_ path: String) -> FleetHomeError {
        FleetHomeError(.unwritable, "writing \(path) failed: \(Folder.reason())")
    }

    deinit { for file in pending { unlink(file.temporary) } }
}
