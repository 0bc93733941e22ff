import Crypto
import FleetProtocol
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import AppConnect

/// A key that a test can take away.
final class TestKey: Sendable {
    private let key: Mutex<SymmetricKey?>

    init(_ byte: UInt8 = 1) { key = Mutex(SymmetricKey(data: Array(repeating: byte, count: 32))) }

    func takeAway() { key.withLock { $0 = nil } }

    var fileKey: FileKey {
        FileKey { [self] in
            guard let key = key.withLock({ $0 }) else { throw SecureFileError(.noKeys, "taken away") }
            return key
        }
    }
}

func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
    }
}

@Suite("Secure files")
struct SecureFileTests {
    private func code(_ body: () throws -> Void) -> SecureFileError.Code? {
        do {
            try body()
            return nil
        } catch { return (error as? SecureFileError)?.code }
    }

    @Test(
        "what is written is read again, and is not on the disk",
        arguments: [0, 1, 4_095, 4_096, 4_097, 100_000, SecureFormat.piece, SecureFormat.piece + 1])
    func whole(_ count: Int) async throws {
        try await withTemporaryFolder { folder in
            let files = SecureFiles(TestKey().fileKey)
            let path = folder.path + "/a"
            let text = bytes(count)
            try files.write(text, to: path)
            #expect(try files.contents(of: path) == text)
            #expect(try files.size(of: path) == Int64(count))
            let raw = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            #expect(Int64(raw.count) == SecureFormat.end(Int64(count)))
            if count > 100 { #expect(!raw.windows(32).contains(Array(text.prefix(32)))) }
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a"])
        }
    }

    @Test("several parts are written and read at once, as writev and readv do")
    func vectors() async throws {
        try await withTemporaryFolder { folder in
            let file = try SecureFiles(TestKey().fileKey).create(folder.path + "/a")
            let text = bytes(10_000)
            try file.write(parts: [Array(text[..<4_000]), [], Array(text[4_000..<4_001]), Array(text[4_001...])])
            #expect(file.offset == 10_000)
            try file.seek(to: 0)
            let parts = try file.read(upToCounts: [4_000, 0, 1, 3_000, 5_000, 7])
            #expect(parts.map(\.count) == [4_000, 0, 1, 3_000, 2_999, 0])
            #expect(Array(parts.joined()) == text && file.offset == 10_000)
            try file.seek(to: 9_999)
            #expect(try file.read(upToCounts: [.max, .max, 1]) == [[text[9_999]], [], []])
            #expect(code { _ = try file.read(upToCounts: [1, -1]) } == .invalidArgument)
        }
    }

    @Test("what the system knows of a file is told with how much is in it")
    func attributes() async throws {
        try await withTemporaryFolder { folder in
            let files = SecureFiles(TestKey().fileKey)
            let path = folder.path + "/a"
            let before = Date.now.timeIntervalSince1970 - 1
            try files.write(bytes(5_000), to: path)
            let attributes = try files.attributes(of: path)
            #expect(attributes.size == 5_000)
            #expect(attributes.encryptedSize == SecureFormat.end(5_000))
            #expect(attributes.permissions == 0o600)
            #expect(attributes.owner == geteuid())
            #expect(Double(attributes.modified.components.seconds) >= before.rounded(.down))
            #expect(chmod(path, 0o640) == 0)
            #expect(try files.attributes(of: path).permissions == 0o640)
            #expect(code { _ = try files.attributes(of: folder.path) } == .regularFileOnly)
        }
    }

    @Test("any part of it can be read and written, as of a plain file")
    func parts() async throws {
        try await withTemporaryFolder { folder in
            let file = try SecureFiles(TestKey().fileKey).create(folder.path + "/a")
            var model: [UInt8] = []
            var generator = SeededGenerator(seed: 5)
            for step in 0..<300 {
                let size = Int64(model.count)
                let offset = Int64.random(in: 0...size + 5_000, using: &generator)
                let count = [1, 100, 4_096, 9_000].randomElement(using: &generator) ?? 1
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<5:
                    let piece = bytes(Int.random(in: 0...count, using: &generator), seed: UInt64(step))
                    try file.write(piece, at: offset)
                    if !piece.isEmpty {
                        model += Array(repeating: 0, count: max(0, Int(offset) + piece.count - model.count))
                        model.replaceSubrange(Int(offset)..<Int(offset) + piece.count, with: piece)
                    }
                case 5:
                    let size = Int64.random(in: 0...size + 3_000, using: &generator)
                    try file.truncate(to: size)
                    model = Array(model.prefix(Int(size))) + Array(repeating: 0, count: max(0, Int(size) - model.count))
                default:
                    let expected = offset < size ? Array(model[Int(offset)...].prefix(count)) : []
                    #expect(try file.read(upToCount: count, at: offset) == expected)
                }
                #expect(try file.size == Int64(model.count))
            }
            try file.seek(to: 0)
            #expect(try file.readToEnd() == model)
        }
    }

    @Test("reading and writing go on where the last one ended")
    func offsets() async throws {
        try await withTemporaryFolder { folder in
            let file = try SecureFiles(TestKey().fileKey).create(folder.path + "/a")
            try file.write([1, 2, 3])
            try file.write([4, 5].lazy.map { $0 })
            #expect(file.offset == 5)
            #expect(try file.read(upToCount: 9).isEmpty)
            try file.seek(to: 1)
            #expect(try file.read(upToCount: 2) == [2, 3])
            #expect(try file.read(upToCount: 1, at: 0) == [1])
            #expect(try file.readToEnd() == [4, 5])
            #expect(try file.seekToEnd() == 5)
            try file.seek(to: 7)
            try file.write([8])
            #expect(try file.read(upToCount: 9, at: 0) == [1, 2, 3, 4, 5, 0, 0, 8])
            #expect(code { try file.seek(to: -1) } == .negativeFileLength)
            #expect(code { try file.truncate(to: -1) } == .negativeFileLength)
            #expect(code { try file.truncate(to: SecureFile.maximumSize + 1) } == .fileTooBig)
            #expect(code { try file.write([1], at: .max) } == .fileTooBig)
            #expect(code { _ = try file.read(upToCount: -1) } == .invalidArgument)
            #expect(try file.size == 8)
            file.close()
            file.close()
            #expect(code { _ = try file.size } == .invalidArgument)
        }
    }

    @Test("without the key nothing is read or written, and the file is as it was")
    func keys() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            let key = TestKey()
            let files = SecureFiles(key.fileKey)
            try files.write([1, 2, 3], to: path)
            let file = try files.open(path, .readingAndWriting)
            key.takeAway()
            #expect(code { _ = try file.read(upToCount: 1) } == .noKeys)
            #expect(code { try file.write([9], at: 0) } == .noKeys)
            #expect(code { try file.truncate(to: 0) } == .noKeys)
            #expect(code { try files.write([9], to: path) } == .noKeys)
            for path in [path, folder.path + "/nothing", folder.path] {
                #expect(code { _ = try files.open(path) } == .noKeys, "\(path)")
                #expect(code { try files.write([9], to: path) } == .noKeys, "\(path)")
            }
            #expect(try SecureFiles(TestKey().fileKey).contents(of: path) == [1, 2, 3])
            // The app has been retired since, and has another key.
            let later = SecureFiles(TestKey(2).fileKey)
            #expect(code { _ = try later.contents(of: path) } == .badKeyOrCorruptData)
            #expect(code { _ = try later.open(path, .readingAndWriting) } == .badKeyOrCorruptData)
            try later.write([9], to: path)
            #expect(try later.contents(of: path) == [9], "what nobody can read any more gives way")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a"])
        }
    }

    @Test("what is no secure file is left alone")
    func others() async throws {
        try await withTemporaryFolder { folder in
            let files = SecureFiles(TestKey().fileKey)
            let plain = folder.path + "/plain"
            for content in [[], bytes(10), bytes(5_000)] {
                try Data(content).write(to: URL(fileURLWithPath: plain))
                #expect(code { _ = try files.open(plain) } == .badKeyOrCorruptData)
                #expect(code { try files.write([1], to: plain) } == .badKeyOrCorruptData)
                #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: plain))) == content)
            }
            #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
            for path in [folder.path, folder.path + "/pipe", "/dev/null"] {
                #expect(code { _ = try files.open(path) } == .regularFileOnly, "\(path)")
                #expect(code { _ = try files.open(path, .readingAndWriting) } == .regularFileOnly, "\(path)")
            }
            #expect(code { _ = try files.open("") } == .invalidArgument)
            #expect {
                try files.contents(of: folder.path + "/nothing")
            } throws: { ($0 as? SecureFileError)?.errno == ENOENT }
            try files.write([1], to: folder.path + "/a")
            let file = try files.open(folder.path + "/a")
            #expect(code { try file.write([2]) } == .invalidArgument)
        }
    }

    @Test("a byte that something else has changed is noticed wherever it is, and the rest can be read")
    func damaged() async throws {
        try await withTemporaryFolder { folder in
            let files = SecureFiles(TestKey().fileKey)
            let url = URL(fileURLWithPath: folder.path + "/a")
            let text = bytes(9_000)
            try files.write(text, to: url.path)
            let good = [UInt8](try Data(contentsOf: url))
            for place in stride(from: 0, to: good.count, by: 37) where !(60..<64).contains(place) {
                var bad = good
                bad[place] ^= 4
                try Data(bad).write(to: url)
                #expect(code { _ = try files.contents(of: url.path) } == .badKeyOrCorruptData, "\(place)")
                guard place >= 64 + 4_124 else { continue }
                #expect(try files.open(url.path).read(upToCount: 4_096, at: 0) == Array(text.prefix(4_096)))
            }
            // Chunks that have changed places, or come from another file, and a file that was cut.
            var swapped = good
            swapped.replaceSubrange(64..<64 + 4_124, with: good[64 + 4_124..<64 + 2 * 4_124])
            let other = folder.path + "/b"
            try files.write(text, to: other)
            var moved = [UInt8](try Data(contentsOf: URL(fileURLWithPath: other)))
            moved.replaceSubrange(64..<64 + 4_124, with: good[64..<64 + 4_124])
            for bad in [
                swapped, moved, Array(good.dropLast(1)), Array(good.prefix(64 + 4_124)), Array(good.prefix(63)),
            ] {
                try Data(bad).write(to: url)
                #expect(code { _ = try files.contents(of: url.path) } == .badKeyOrCorruptData)
            }
        }
    }

    @Test("files are made, copied, compared and moved, and never over what is there")
    func set() async throws {
        try await withTemporaryFolder { folder in
            let files = SecureFiles(TestKey().fileKey)
            let (a, b, c) = (folder.path + "/a", folder.path + "/b", folder.path + "/c")
            try files.write(bytes(10_000), to: a)
            try files.copy(a, to: b)
            #expect(try files.isEqual(a, b))
            #expect(try Data(contentsOf: URL(fileURLWithPath: a)) != Data(contentsOf: URL(fileURLWithPath: b)))
            for attempt in [{ try files.copy(a, to: b) }, { try files.move(a, to: b) }, { _ = try files.create(b) }] {
                #expect { try attempt() } throws: { ($0 as? SecureFileError)?.errno == EEXIST }
            }
            try files.move(b, to: c)
            #expect(try files.isEqual(a, c))
            try files.open(c, .readingAndWriting).write([1], at: 5_000)
            #expect(try !files.isEqual(a, c))
            try files.write([1], to: c)
            #expect(try !files.isEqual(a, c))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["a", "c"])
        }
    }

    @Test("a move takes nothing away that is written to the old name meanwhile")
    func movesAndWrites() async throws {
        try await withTemporaryFolder { folder in
            let (a, b, temporary) = (folder.path + "/a", folder.path + "/b", folder.path + "/c")
            for number in 0..<5_000 {
                let new = Data("new \(number)".utf8)
                try Data([1]).write(to: URL(fileURLWithPath: a))
                try new.write(to: URL(fileURLWithPath: temporary))
                async let moving: Void = RawFile.rename(a, to: b, isReplacing: false)
                async let writing: Void = RawFile.rename(temporary, to: a, isReplacing: true)
                _ = try await (moving, writing)
                let found = [a, b].compactMap { FileManager.default.contents(atPath: $0) }
                try #require(found.contains(new), "\(number)")
                try FileManager.default.removeItem(atPath: b)
            }
        }
    }

    @Test("the key is asked for while the file is locked, and whenever it goes before the end of a call ends that call")
    func keyGoes() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            try SecureFiles(TestKey().fileKey).write([1, 2, 3], to: path)
            let probe = try RawFile(opening: path, O_RDONLY)
            defer { probe.close() }
            /// Whether somebody else had the file locked, at each time that the key was asked for; and how often it is there yet.
            let asks = Mutex((wereLocked: [Bool](), left: Int.max))
            let key = FileKey {
                let isLocked = flock(probe.descriptor, LOCK_EX | LOCK_NB) != 0
                probe.unlock()
                let isThere = asks.withLock { asks in
                    asks.wereLocked.append(isLocked)
                    asks.left -= 1
                    return asks.left >= 0
                }
                guard isThere else { throw SecureFileError(.noKeys, "gone") }
                return try TestKey().fileKey.current()
            }
            let file = try SecureFile(path, .readingAndWriting, key: key)
            for isWriting in [false, true] {
                let call = {
                    if isWriting { try file.write([9], at: 0) } else { _ = try file.read(upToCount: 3, at: 0) }
                }
                asks.withLock { $0 = ([], .max) }
                try call()
                let wereLocked = asks.withLock { $0.wereLocked }
                #expect(wereLocked.last == true, "others may have held it for long")
                try file.write([1], at: 0)
                for left in 0..<wereLocked.count {
                    asks.withLock { $0 = ([], left) }
                    #expect(code(call) == .noKeys)
                    #expect(try SecureFiles(TestKey().fileKey).contents(of: path) == [1, 2, 3])
                    asks.withLock { $0.left = .max }
                }
            }
        }
    }

    @Test("an open file that has been replaced is not written to any more")
    func replaced() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            let files = SecureFiles(TestKey().fileKey)
            try files.write([1], to: path)
            chmod(path, 0o640)
            let file = try files.open(path, .readingAndWriting)
            try files.write([2], to: path)
            #expect(code { try file.write([3]) } == .invalidArgument)
            #expect(try file.read(upToCount: 9, at: 0) == [1])
            #expect(try files.contents(of: path) == [2])
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o640)
        }
    }

    @Test("names may be anything that the system takes")
    func names() async throws {
        try await withTemporaryFolder { folder in
            let files = SecureFiles(TestKey().fileKey)
            for name in [String(repeating: "文", count: 80), "\u{301}x", "-rf", String(repeating: "x", count: 255)] {
                let path = folder.path + "/" + name
                try files.write([1], to: path)
                #expect(try files.contents(of: path) == [1])
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 4)
            let path = folder.path + "/-rf"
            for bad in ["", "a\0b", folder.path + "/c\0d"] {
                #expect(code { try files.move(path, to: bad) } == .invalidArgument)
                #expect(code { _ = try files.create(bad) } == .invalidArgument)
                #expect(code { try files.write([1], to: bad) } == .invalidArgument)
            }
            #expect(code { try files.write(repeatElement(0, count: 1 << 50), to: path) } == .fileTooBig)
        }
    }

    @Test("who keeps a file to itself for too long holds nobody up, and is waited for until then")
    func inUse() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            try SecureFiles(TestKey().fileKey).write([1], to: path)
            let (other, file) = (try RawFile(opening: path, O_RDWR), try RawFile(opening: path, O_RDWR))
            defer {
                other.close()
                file.close()
            }
            try other.lock(isExclusive: false)
            try file.lock(isExclusive: false, atMost: .zero)
            file.unlock()
            let problem = #expect(throws: SecureFileError.self) {
                try file.lock(isExclusive: true, atMost: .milliseconds(20))
            }
            #expect(problem?.errno == EWOULDBLOCK && problem?.code == .internal)
            let waiting = Task.detached { try file.lock(isExclusive: true) }  // awaited below
            other.unlock()
            try await waiting.value
            #expect(flock(other.descriptor, LOCK_SH | LOCK_NB) != 0)
        }
    }

    @Test("many may use one file at a time, and each call is one step to the others")
    func together() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            let key = TestKey()
            try SecureFiles(key.fileKey).write(Array(repeating: 0, count: 20_000), to: path)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<3 as Range<UInt8> {
                    group.addTask {
                        let file = try SecureFiles(key.fileKey).open(path, .readingAndWriting)
                        for count in 0..<150 { try file.write(Array(repeating: writer, count: 20_000 + count), at: 0) }
                    }
                }
                group.addTask {
                    let file = try SecureFiles(key.fileKey).open(path)
                    for _ in 0..<300 { #expect(try Set(file.read(upToCount: 20_000, at: 0)).count == 1) }
                }
                try await group.waitForAll()
            }
        }
    }
}

extension Array where Element == UInt8 {
    /// Every run of so many bytes.
    fileprivate func windows(_ count: Int) -> [[UInt8]] {
        stride(from: 0, through: self.count - count, by: 1).map { Array(self[$0..<$0 + count]) }
    }
}
