import FleetProtocol
import Glibc
import Synchronization

/// A log on the disk, for one process: when it has reached its size it gets the time as an ending, and a new one begins.
///
/// Lines are written at once, and not synced. One for which the disk has no room is left out.
final class LogFile: Sendable {
    /// The size at which a new one begins, in bytes, and how many there are in all.
    static let size = 1_000_000
    static let count = 20
    /// `.2026-11-27T13-00-00.000Z`, without colons: some file systems (FAT) have none in names.
    static let endingSize = 25

    private let path: String
    private let state: Mutex<State>

    private struct State {
        var descriptor: Int32
        var size: Int
    }

    init(path: String) throws(AppConnectError) {
        // Where it can never get another name it would grow for ever.
        guard RawFile.name(of: path).utf8.count + Self.endingSize <= Int(NAME_MAX),
            access(RawFile.folder(of: path), W_OK) == 0
        else {
            throw AppConnectError(
                .invalidOptions,
                "beside the log file '\(path)' no other can be begun at \(Self.size) bytes: its folder must be writable, and its"
                    + " name have \(Int(NAME_MAX) - Self.endingSize) bytes at most")
        }
        let descriptor = Self.open(path)
        var info = stat()
        guard descriptor >= 0, fstat(descriptor, &info) == 0 else {
            throw AppConnectError(
                .invalidOptions, "the log file '\(path)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        guard info.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw AppConnectError(.invalidOptions, "the log file '\(path)' is there already, and is no file")
        }
        self.path = path
        state = Mutex(State(descriptor: descriptor, size: Int(info.st_size)))
    }

    deinit { state.withLock { _ = close($0.descriptor) } }

    private static func open(_ path: String) -> Int32 {
        guard !path.utf8.contains(0) else {
            errno = EINVAL
            return -1
        }
        // Opening a pipe would wait for its reader.
        return Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o600)
    }

    /// `2026-11-27T13:00:00.000Z status: hello`; further lines of a message are indented, so that none looks like another entry.
    func write(_ level: LogLevel, _ message: String, at now: Timestamp) {
        let lines = message.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let text = lines.joined(separator: "\n    ")
        let line = Array("\(now) \(level): \(text)\n".utf8)
        state.withLock { state in
            if state.size + line.count > Self.size, state.size > 0 { begin(&state, at: now) }
            let written = line.withUnsafeBytes { Glibc.write(state.descriptor, $0.baseAddress, $0.count) }
            if written == line.count { state.size += written } else { Self.takeBack(written, of: state.descriptor) }
        }
    }

    /// The disk was full in the middle of a line: the next one would stand behind what there is of it.
    private static func takeBack(_ written: Int, of descriptor: Int32) {
        var info = stat()
        guard written > 0, fstat(descriptor, &info) == 0, info.st_size >= written else { return }
        _ = ftruncate(descriptor, info.st_size - off_t(written))
    }

    /// Begins a new file. Where that cannot be, the old one goes on.
    private func begin(_ state: inout State, at now: Timestamp) {
        // Two of one millisecond: the later one waits until there is another.
        let old = "\(path).\(now.description.replacing(":", with: "-"))"
        guard RawFile.isRenamed(path, toNew: old) || errno == ENOENT else { return }
        let next = Self.open(path)
        guard next >= 0 else { return }
        close(state.descriptor)
        state = State(descriptor: next, size: 0)
        removeOldest(at: now)
    }

    /// What lies ahead is of a clock that was wrong, and goes first: it must not take the places of what is written now.
    private func removeOldest(at now: Timestamp) {
        let (folder, prefix) = (RawFile.folder(of: path), RawFile.name(of: path) + ".")
        guard let directory = opendir(folder) else { return }
        defer { closedir(directory) }
        var old: [(name: String, time: Timestamp)] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            // Those of this log, and no other file whose name begins so.
            if name.hasPrefix(prefix), let time = Self.time(name.dropFirst(prefix.count)) { old.append((name, time)) }
        }
        old.sort { ($0.time <= now ? 1 : 0, $0.time) < ($1.time <= now ? 1 : 0, $1.time) }
        for file in old.dropLast(Self.count - 1) { unlink("\(folder)/\(file.name)") }
    }

    /// As this version writes it, or an earlier one, with colons.
    private static func time(_ ending: Substring) -> Timestamp? {
        let parts = ending.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        return Timestamp("\(parts[0])T\(parts[1].replacing("-", with: ":"))")
    }
}
