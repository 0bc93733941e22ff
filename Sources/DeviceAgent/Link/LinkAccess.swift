import Crypto
package import FleetProtocol
package import Glibc

/// Who may be which app: the files of `apps.d`, read at each registration, so that a change counts at once, and again every
/// half minute for who is connected.
///
/// A file is `{"v":1,"app":"com.example.mail","uid":1000}`, or has `"token"` in place of the uid (then the file's mode is
/// 0600), or both, when both must fit. Folder and files count while their owner, who is the agent's user or root, alone can
/// change them. With no file at all, only processes of the agent's own user may register.
package struct LinkAccess: Sendable {
    private let folder: String

    package init(folder: String) { self.folder = folder }

    private struct Rule: JSONReadable {
        let app: AppID
        let uid: Int64?
        let token: String?

        init(from reader: inout JSONReader) throws {
            var version: Int64?
            var app: AppID?
            var uid: Int64?
            var token: String?
            try reader.object { name, value in
                switch name {
                case "v": version = try value.version()
                case "app": app = try value.value()
                case "uid": uid = try value.integer(in: 0...Int64(UInt32.max))
                case "token": token = try value.string(limit: 200)
                default: throw FleetProtocolError(.value, "unknown member: expected v, app, uid or token")
                }
            }
            _ = try required(version, "v")
            self.app = try required(app, "app")
            guard uid != nil || (token.map { $0.utf8.count >= 16 } ?? false) else {
                throw FleetProtocolError(.missing, "expected a uid, or a token of at least 16 bytes")
            }
            self.uid = uid
            self.token = token
        }
    }

    /// Why a process of user `uid` may not register so; nil when it may.
    package func refusal(of registration: Registration, uid: uid_t) -> String? {
        let app = registration.app
        let files: [String]
        do {
            if let info = Files.status(folder) { try Self.checkOwner(folder, info) }
            files = try Files.names(in: folder).filter { $0.hasSuffix(".json") }
        } catch {
            return "nobody may be \(app): \(error)"
        }
        guard !files.isEmpty else {
            return uid == geteuid()
                ? nil
                : "user \(uid) may not be \(app): without a file in \(folder), only the agent's own user may register"
        }
        var problems: [String] = []
        var isNamed = false
        for name in files {
            do {
                let path = "\(folder)/\(name)"
                let rule = try Rule(json: Files.read(path, limit: 16_384), limit: 16_384)
                guard rule.app == app else { continue }
                guard let info = Files.status(path) else { throw Files.failure("look at \(path)") }
                try Self.checkOwner(path, info)
                guard rule.token == nil || info.st_mode & 0o077 == 0 else {
                    problems.append("\(name): others may read its token: chmod 600 it, and choose another")
                    continue
                }
                isNamed = true
                guard rule.uid.map({ $0 == Int64(uid) }) ?? true else { continue }
                guard let token = rule.token else { return nil }
                if Self.isEqual(token, registration.token ?? "") { return nil }
            } catch {
                problems.append("\(name): \(error)")
            }
        }
        let broken = problems.isEmpty ? "" : " (not counted: \(problems.joined(separator: "; ")))"
        if isNamed {
            return "user \(uid) may not be \(app): no file in \(folder) allows it with this user or token\(broken)"
        }
        return "\(app) is not among the apps of this device: no file in \(folder) names it\(broken)"
    }

    /// Throws when somebody else could make himself an app.
    private static func checkOwner(_ path: String, _ info: stat) throws {
        try Files.checkOwner(path, info, orRoot: true)
        try Files.checkMode(path, info, isSecret: false)
    }

    /// Compares hashes, so that the time says nothing about where two tokens differ.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        SHA256.hash(data: Array(left.utf8)) == SHA256.hash(data: Array(right.utf8))
    }
}
