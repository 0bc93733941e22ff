import FleetProtocol
import Foundation
import Glibc

/// What one app has printed in all its launches, read while it is written.
struct ChaosTranscript {
    /// A value that the app has, as far as it can be told apart.
    struct Heard: Hashable {
        let at: Int64
        let policy: Policy
        let tag: String
    }

    let device: DeviceID
    let app: AppID
    private let path: String
    private let keyFile: String
    private var offset: UInt64 = 0
    private var rest = Data()

    /// Documents in the order in which the app was told of them.
    private(set) var heard: [Heard] = []
    /// The levels that it was told, without repetition.
    private(set) var levels: [String] = []
    /// The URLs that it was not let open, and when.
    private(set) var blocked: [(at: Int64, url: String)] = []
    private(set) var properties: (at: Int64, value: JSONValue)?
    /// What it said of its secure file since.
    private(set) var file: JSONValue?
    /// It was told that it is retired while the key from before was there.
    private(set) var violations: [String] = []
    /// It was told that it is retired, and a key was there, maybe a newer one: then it is told so in turn.
    private(set) var suspicion: String?
    private var notRetiredSince: Double?

    init(of app: AppID, on device: DeviceID, output: String, keyFile: String) {
        self.app = app
        self.device = device
        path = output
        self.keyFile = keyFile
    }

    /// Reads what is new, and returns how many lines that were.
    @discardableResult
    mutating func read(at now: Int64) -> Int {
        guard let file = FileHandle(forReadingAtPath: path) else { return 0 }
        defer { try? file.close() }
        guard (try? file.seek(toOffset: offset)) != nil, let data = try? file.readToEnd(), !data.isEmpty else {
            return 0
        }
        offset += UInt64(data.count)
        rest += data
        var count = 0
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = Array(rest[rest.startIndex..<end])
            rest = Data(rest[(end + 1)...])
            // Of a launch that was killed there may be half a line.
            if let value = try? JSONValue(json: line, limit: line.count) { take(value, now) }
            count += 1
        }
        return count
    }

    mutating func take(_ line: JSONValue, _ now: Int64) {
        switch line["event"]?.stringValue {
        case "auth":
            hear(.auth, line["message"]?.stringValue, now)
            takeAuth(line["state"]?.stringValue, now)
        case "config": hear(.config, line["values"]?["tag"]?.stringValue, now)
        case "openIn": hear(.openIn, Self.tag(in: line["apps"]), now)
        case "openFrom": hear(.openFrom, Self.tag(in: line["apps"]), now)
        case "logLevel": takeLevel(line["level"]?.stringValue)
        case "blocked": if let url = line["url"]?.stringValue { blocked.append((now, url)) }
        case "properties": takeProperties(line, now)
        case "read", "error": file = line
        default: break
        }
    }

    /// Those of the ready come first of a launch; those that were asked for come while everything is at rest.
    private mutating func takeProperties(_ line: JSONValue, _ now: Int64) {
        properties = (now, line)
        file = nil
        hear(.auth, line["authMessage"]?.stringValue, now)
        hear(.config, line["config"]?["tag"]?.stringValue, now)
        hear(.openIn, Self.tag(in: line["openInWhitelist"]), now)
        hear(.openFrom, Self.tag(in: line["openFromWhitelist"]), now)
        takeLevel(line["logLevel"]?.stringValue)
        if line["authState"]?.stringValue != "retired" { takeAuth(line["authState"]?.stringValue, now) }
    }

    private mutating func hear(_ policy: Policy, _ tag: String?, _ now: Int64) {
        guard let tag, ChaosModel.isTag(tag) else { return }
        if heard.last(where: { $0.policy == policy })?.tag != tag {
            heard.append(Heard(at: now, policy: policy, tag: tag))
        }
    }

    private static func tag(in apps: JSONValue?) -> String? {
        apps?.arrayValue?.compactMap(\.stringValue).first(where: ChaosModel.isTag)
    }

    private mutating func takeLevel(_ level: String?) {
        if let level, levels.last != level { levels.append(level) }
    }

    private mutating func takeAuth(_ state: String?, _ now: Int64) {
        let wall = Date.now.timeIntervalSince1970
        guard state == "retired" else {
            notRetiredSince = notRetiredSince ?? wall
            suspicion = nil
            return
        }
        var info = stat()
        if stat(keyFile, &info) == 0 {
            let made = Double(info.st_mtim.tv_sec) + Double(info.st_mtim.tv_nsec) / 1e9
            let what = "told that it is retired at \(now) ms, and its key was on the disk"
            // The times of files are those of the last tick.
            if let since = notRetiredSince, made < since - 0.05 { violations.append(what) } else { suspicion = what }
        }
        notRetiredSince = nil
    }
}
