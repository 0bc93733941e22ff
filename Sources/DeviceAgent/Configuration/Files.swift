import Glibc

/// The few calls on files that an agent needs.
enum Files {
    /// The content of a regular file of at most `limit` bytes.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure("read \(path)") }
        defer { close(file) }
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

    static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    static func makeFolder(_ path: String, mode: mode_t) throws {
        guard mkdir(path, mode) == 0 || errno == EEXIST else { throw failure("make the folder \(path)") }
    }

    static func failure(_ what: String) -> DeviceAgentError {
        DeviceAgentError(.configuration, "cannot \(what): \(String(cString: strerror(errno)))")
    }
}
