import FleetProtocol
import GRDB
import Glibc

extension FleetStore {
    /// Copies the database at `path` to a new file, as it is at one moment, also while a controller works on it, which goes
    /// on meanwhile.
    ///
    /// Nobody else can read the copy. It is whole and on the disk when this returns; when it throws, there is none.
    package static func backUp(_ path: String, to copy: String) throws {
        _ = isSQLiteConfigured
        var info = stat()
        guard stat(path, &info) == 0 else {
            throw FleetControllerError(.unusable, "there is no database '\(path)' that could be copied")
        }
        try checkFile(path, isExpected: true)
        guard lstat(copy, &info) != 0 else {
            throw FleetControllerError(.unusable, "'\(copy)' is there already: name a new file")
        }
        let temporary = "\(copy).\(getpid())"
        let file = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw unwritable(copy) }
        defer {
            Glibc.close(file)
            for name in [temporary, temporary + "-wal", temporary + "-shm", temporary + "-journal"] { unlink(name) }
        }
        try copyPages(of: path, to: temporary, called: copy)
        guard fsync(file) == 0, rename(temporary, copy) == 0, syncFolder(of: copy) else { throw unwritable(copy) }
    }

    private static func copyPages(of path: String, to temporary: String, called copy: String) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        configuration.label = "fleet-controller backup"
        let source: DatabaseQueue
        do {
            source = try DatabaseQueue(path: path, configuration: configuration)
        } catch let error as DatabaseError { throw explain(error, path) }
        do {
            let target = try DatabaseQueue(path: temporary, configuration: configuration)
            try source.backup(to: target)
            let problem = try target.read { try String.fetchOne($0, sql: "PRAGMA integrity_check(1)") }
            guard problem == "ok" else { throw damaged(path, problem ?? "it cannot be checked") }
            // What a log still holds goes into the file, which is all there will be.
            try target.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
            try target.close()
        } catch let error as DatabaseError {
            // What is wrong with pages has come from the database; all else has happened to the copy.
            guard [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_BUSY].contains(error.resultCode) else {
                throw FleetControllerError(.unusable, "writing '\(copy)' failed: SQLite error \(error.resultCode)")
            }
            throw explain(error, path)
        }
        try source.close()
    }

    private static func syncFolder(of file: String) -> Bool {
        let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return true }  // One that may be written but not read: the rename itself stands.
        defer { Glibc.close(descriptor) }
        return fsync(descriptor) == 0
    }

    private static func unwritable(_ copy: String) -> FleetControllerError {
        FleetControllerError(.unusable, "writing '\(copy)' failed: \(String(cString: strerror(errno)))")
    }
}
