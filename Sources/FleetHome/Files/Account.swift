import Glibc

/// A user of the operating system.
struct Account: Hashable, Sendable {
    let name: String
    let uid: uid_t
    let gid: gid_t

    static var isRoot: Bool { geteuid() == 0 }

    init(named name: String) throws {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        guard getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else {
            throw FleetHomeError(
                .unknownUser, "this system has no user '\(name)', as whom the broker would run",
                remedy: "install Mosquitto first, or name another user with --broker-user")
        }
        self.name = name
        uid = entry.pw_uid
        gid = entry.pw_gid
    }

    static func name(of uid: uid_t) -> String {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        guard getpwuid_r(uid, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return "uid \(uid)" }
        return String(cString: entry.pw_name)
    }

    /// Whether this user may read a file, as far as owner, groups and modes say.
    func canRead(_ path: String) -> Bool {
        var info = stat()
        guard uid != 0, stat(path, &info) == 0 else { return true }
        guard firstClosedFolder(above: path) == nil else { return false }
        if info.st_uid == uid { return info.st_mode & S_IRUSR != 0 }
        return info.st_mode & (groups.contains(info.st_gid) ? S_IRGRP : S_IROTH) != 0
    }

    private var groups: [gid_t] {
        var count: Int32 = 256
        var groups = [gid_t](repeating: gid, count: Int(count))
        return getgrouplist(name, gid, &groups, &count) < 0 ? [gid] : Array(groups.prefix(Int(count)))
    }

    /// The first folder on the way to `path` that this user may not enter, as far as owner, group and modes say.
    func firstClosedFolder(above path: String) -> String? {
        guard uid != 0 else { return nil }
        var folder = ""
        for part in path.split(separator: "/").dropLast() {
            folder += "/\(part)"
            var info = stat()
            guard stat(folder, &info) == 0 else { continue }
            let bit: mode_t = info.st_uid == uid ? S_IXUSR : groups.contains(info.st_gid) ? S_IXGRP : S_IXOTH
            if info.st_mode & bit == 0 { return folder }
        }
        return nil
    }
}
