import FleetProtocol
import Glibc

/// The id of this installation of an app, made at its first start: a new one tells the agent of a first launch.
enum InstallID {
    static let fileName = "install-id"

    /// The folder that is used when the options name none.
    static func defaultFolder(of app: AppID) throws(AppConnectError) -> String {
        // The specification has relative paths ignored.
        if let base = variable("XDG_DATA_HOME"), base.hasPrefix("/") { return "\(base)/fleetbus/\(app)" }
        guard let home = variable("HOME"), home.hasPrefix("/") else {
            throw AppConnectError(.dataFolder, "neither dataFolder nor XDG_DATA_HOME nor HOME says where to keep data")
        }
        return "\(home)/.local/share/fleetbus/\(app)"
    }

    /// Reads the id, or makes one: atomically and for the user alone, so that of two processes both get the same.
    static func read(in folder: String) throws(AppConnectError) -> RandomID {
        try make(folder)
        let path = "\(folder)/\(fileName)"
        if let id = try content(of: path) { return id }
        let id = RandomID.random()
        let draft = "\(path).\(id)"
        try write(id.text + "\n", to: draft)
        defer { unlink(draft) }
        if RawFile.isRenamed(draft, toNew: path) {
            keepFolder(of: path)
            return id
        }
        guard errno == EEXIST else { throw problem("'\(path)' cannot be written") }
        if let other = try content(of: path) { return other }
        // What stands there is no id: as good as none.
        guard rename(draft, path) == 0 else { throw problem("'\(path)' cannot be replaced") }
        keepFolder(of: path)
        return id
    }

    /// The name is there after a loss of power, too, where the file system can do that: the agent remembers the id.
    private static func keepFolder(of path: String) { try? RawFile.syncFolder(of: path) }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    static func make(_ folder: String) throws(AppConnectError) {
        var path = folder.hasPrefix("/") ? "" : "."
        for part in folder.split(separator: "/") {
            path += "/\(part)"
            if mkdir(path, 0o700) == 0 {
                keepFolder(of: path)
            } else if errno != EEXIST, errno != EISDIR, !exists(path) {
                throw problem("the folder '\(path)' cannot be made")
            }
        }
    }

    /// A parent that may not be written need not be made either.
    private static func exists(_ path: String) -> Bool {
        let error = errno
        defer { errno = error }
        return access(path, F_OK) == 0
    }

    /// The id in the file; nil when there is no file, or no id in it.
    private static func content(of path: String) throws(AppConnectError) -> RandomID? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw problem("'\(path)' cannot be read") }
            return nil
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw problem("'\(path)' cannot be read") }
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        return RandomID(text.last == "\n" ? String(text.dropLast()) : text)
    }

    private static func write(_ text: String, to path: String) throws(AppConnectError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw problem("'\(path)' cannot be made") }
        defer { close(descriptor) }
        var text = text
        let count = text.withUTF8 { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count == text.utf8.count, fsync(descriptor) == 0 else {
            let problem = problem("'\(path)' cannot be written")
            unlink(path)
            throw problem
        }
    }

    private static func problem(_ what: String) -> AppConnectError {
        AppConnectError(.dataFolder, "\(what): \(String(cString: strerror(errno)))")
    }
}
