import FleetProtocol
import Glibc

/// The few calls on files that an agent needs.
enum Files {
    /// The content of a regular file of at most `limit` bytes.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        // Opening a pipe would wait for its writer.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw failure("read \(path)") }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0 else { throw failure("read \(path)") }
        guard info.st_mode & S_IFMT == S_IFREG else {
            throw DeviceAgentError(.configuration, "\(path) is no file: put the file there that belongs there")
        }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            guard count >= 0 else { throw failure("read \(path)") }
            if count == 0 { return content }
            content += buffer[..<count]
            guard content.count <= limit else {
                throw DeviceAgentError(.configuration, "\(path) has more than \(limit) bytes")
            }
        }
    }

    static func status(_ path: String) -> stat? {
        var info = stat()
        return stat(path, &info) == 0 ? info : nil
    }

    /// What stands before the last slash of `path`; `.` where there is none.
    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// What stands in a folder; nothing where there is none.
    static func names(in folder: String) throws -> [String] {
        guard let directory = opendir(folder) else {
            if errno == ENOENT { return [] }
            throw failure("read the folder \(folder)")
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                guard errno == 0 else { throw failure("read the folder \(folder)") }
                return names.sorted()
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    static func makeFolder(_ path: String, mode: mode_t) throws {
        guard mkdir(path, mode) == 0 || errno == EEXIST else { throw failure("make the folder \(path)") }
    }

    /// Throws when the file or folder belongs to another user than the agent's, who could change it, or would leave files
    /// behind that the right agent cannot use.
    static func checkOwner(_ path: String, _ info: stat, orRoot: Bool = false) throws {
        guard info.st_uid == geteuid() || orRoot && info.st_uid == 0 else {
            throw DeviceAgentError(
                .configuration,
                "\(path) belongs to user \(info.st_uid), and the agent runs as user \(geteuid()): run it as that user, or"
                    + " chown the file")
        }
    }

    /// Throws when others than the owner could change it, or, if it is secret, read it.
    static func checkMode(_ path: String, _ info: stat, isSecret: Bool) throws {
        guard info.st_mode & (isSecret ? 0o077 : 0o022) == 0 else {
            let mode = String(info.st_mode & 0o777, radix: 8)
            throw DeviceAgentError(
                .configuration,
                isSecret
                    ? "\(path) can be read by others than its owner (mode \(mode)): chmod"
                        + " \(info.st_mode & S_IFMT == S_IFDIR ? 700 : 600) it, and enroll the device again if somebody may"
                        + " have read it"
                    : "\(path) can be changed by others than its owner (mode \(mode)): chmod go-w it")
        }
    }

    static func failure(_ what: String) -> DeviceAgentError {
        DeviceAgentError(.configuration, "cannot \(what): \(reason())")
    }

    static func reason() -> String { String(cString: strerror(errno)) }

    static func oneLine(_ text: String) -> String { Text.printable(text, limit: 300) }
}
