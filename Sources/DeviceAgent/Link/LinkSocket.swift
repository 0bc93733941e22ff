import FleetProtocol
import Glibc

/// Where apps find the agent: a Unix domain socket, checked before it is opened.
struct LinkSocket {
    let path: String

    /// Throws when the path is too long, its folder could be changed by others, or another agent answers there. A socket
    /// that nobody answers on is removed.
    func prepare() throws {
        guard path.utf8.count <= Link.maximumPath else {
            throw DeviceAgentError(
                .socket,
                "the socket's path has \(path.utf8.count) bytes, where Linux allows \(Link.maximumPath): \(path);"
                    + " set \"socket\" in the agent's configuration to a shorter one")
        }
        let folder = Files.folder(of: path)
        guard let info = Files.status(folder), info.st_mode & S_IFMT == S_IFDIR else {
            throw DeviceAgentError(.socket, "the socket's folder \(folder) does not exist")
        }
        guard info.st_uid == geteuid() || info.st_uid == 0 else {
            throw DeviceAgentError(
                .socket,
                "the socket's folder \(folder) belongs to user \(info.st_uid): it must be the agent's or root's")
        }
        guard info.st_mode & 0o022 == 0 else {
            throw DeviceAgentError(
                .socket, "the socket's folder \(folder) can be changed by others than its owner: chmod go-w it")
        }
        guard let present = Files.status(path) else { return }
        guard present.st_mode & S_IFMT == S_IFSOCK else {
            throw DeviceAgentError(.socket, "\(path) is there already, and is no socket: move it away")
        }
        guard !isAnswered else {
            throw DeviceAgentError(.socket, "another agent answers at \(path): stop it first")
        }
        guard unlink(path) == 0 else { throw Files.failure("remove the old socket \(path)") }
    }

    private var isAnswered: Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return connect(descriptor)
    }

    /// Connects a socket to the path, which must not be too long. Leaves the reason in `errno` when it cannot be done.
    func connect(_ descriptor: Int32) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
