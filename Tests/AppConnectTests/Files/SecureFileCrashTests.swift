import Foundation
import Synchronization
import TestSupport
import Testing

@testable import AppConnect

/// What is left of a file when the process, or the power, ends in the middle of a change.
@Suite("Secure files cut off at any point")
struct SecureFileCrashTests {
    /// A change, by its name.
    struct Change: Sendable, CustomTestStringConvertible {
        let name: String
        let before: Int
        let make: @Sendable (SecureFile) throws -> Void
        var testDescription: String { name }
    }

    static let changes = [
        Change(name: "over the middle", before: 9_000) { try $0.write(bytes(100, seed: 7), at: 4_050) },
        Change(name: "over all of it", before: 9_000) { try $0.write(bytes(9_000, seed: 7), at: 0) },
        Change(name: "over the end", before: 9_000) { try $0.write(bytes(5_000, seed: 7), at: 8_000) },
        Change(name: "behind the end", before: 8_192) { try $0.write(bytes(5_000, seed: 7), at: 8_192) },
        Change(name: "far behind the end", before: 100) { try $0.write(bytes(10, seed: 7), at: 9_000) },
        Change(name: "into nothing", before: 0) { try $0.write(bytes(5_000, seed: 7), at: 0) },
        Change(name: "cut within a chunk", before: 9_000) { try $0.truncate(to: 5_000) },
        Change(name: "cut between chunks", before: 9_000) { try $0.truncate(to: 4_096) },
        Change(name: "cut to nothing", before: 9_000) { try $0.truncate(to: 0) },
        Change(name: "grown", before: 5_000) { try $0.truncate(to: 9_000) },
    ]

    /// The steps of a change, and what the file was on the disk before it, and is after it.
    private func steps(
        of change: Change, _ path: String
    ) throws -> (steps: [RawFile.Change], before: [UInt8], contents: [[UInt8]]) {
        let files = SecureFiles(TestKey().fileKey)
        try files.write(bytes(change.before), to: path)
        let before = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let recorded = Mutex<[RawFile.Change]>([])
        let file = try SecureFile(
            path, .readingAndWriting, key: TestKey().fileKey,
            observer: { step in recorded.withLock { $0.append(step) } })
        try change.make(file)
        let contents = [bytes(change.before), try files.contents(of: path)]
        return (recorded.withLock { $0 }, before, contents)
    }

    private func check(_ image: [UInt8], _ path: String, _ contents: [[UInt8]], _ what: String) throws {
        try Data(image).write(to: URL(fileURLWithPath: path))
        let files = SecureFiles(TestKey().fileKey)
        let found = try? files.contents(of: path)
        #expect(found.map(contents.contains) == true, "\(what): the file is torn")
        // The next change finishes what was left, or takes it away.
        let file = try files.open(path, .readingAndWriting)
        try file.write([9], at: 0)
        var expected = found ?? []
        if expected.isEmpty { expected = [9] } else { expected[0] = 9 }
        #expect(try file.read(upToCount: .max, at: 0) == expected, "\(what): the next change is not what it should be")
        let length = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64
        #expect(length == SecureFormat.end(Int64(expected.count)), "\(what): something is left over")
    }

    @Test("a process that is killed leaves what was there, or what was written, wherever that is", arguments: changes)
    func killed(_ change: Change) async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            let (steps, before, contents) = try steps(of: change, path)
            var image = before
            for (number, step) in steps.enumerated() {
                // The header is within one sector, which disks and kernels write at once.
                if case .write(let bytes, let offset) = step, offset != SecureFormat.sizeOffset {
                    for count in stride(from: 0, to: bytes.count, by: bytes.count > 200 ? 97 : 1) {
                        var cut = image
                        cut.apply(.write(Array(bytes.prefix(count)), at: offset))
                        try check(cut, path, contents, "step \(number) of \(steps.count), after \(count) bytes")
                    }
                }
                image.apply(step)
                try check(image, path, contents, "after step \(number) of \(steps.count)")
            }
            #expect(
                steps.last.map { if case .write = $0 { true } else { false } } == false, "nothing is left to the system"
            )
        }
    }

    @Test("so does a power cut, whatever of what was not synced has reached the disk", arguments: changes)
    func powerCut(_ change: Change) async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            let (steps, before, contents) = try steps(of: change, path)
            var (synced, open): ([UInt8], [RawFile.Change]) = (before, [])
            for (number, step) in (steps + [.sync]).enumerated() {
                guard step == .sync else {
                    open.append(step)
                    continue
                }
                for chosen in 0..<(1 << min(open.count, 10)) {
                    var image = synced
                    for (index, step) in open.enumerated() where chosen >> index & 1 == 1 { image.apply(step) }
                    try check(image, path, contents, "before the sync at \(number), \(chosen)")
                }
                for step in open { synced.apply(step) }
                open = []
            }
        }
    }

    @Test("the record of an earlier change counts no more, wherever it comes from")
    func oldRecord() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/a"
            let change = Change(name: "", before: 9_000) { try $0.write(bytes(5_000, seed: 7), at: 0) }
            let (steps, _, _) = try steps(of: change, path)
            let record = try #require(
                steps.compactMap { step in
                    if case .write(let bytes, _) = step, bytes.suffix(16).starts(with: "FBSFredo".utf8) {
                        bytes
                    } else {
                        nil
                    }
                }.first)
            let files = SecureFiles(TestKey().fileKey)
            try files.open(path, .readingAndWriting).write(bytes(9_000, seed: 9), at: 0)
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try handle.seekToEnd()
            try handle.write(contentsOf: record)
            try handle.close()
            #expect(try files.contents(of: path) == bytes(9_000, seed: 9))
            try files.open(path, .readingAndWriting).write([1], at: 8_999)
            #expect(try files.contents(of: path) == bytes(9_000, seed: 9).dropLast() + [1])
        }
    }

    @Test(
        "a disk that is full leaves the file as it was", .enabled(if: SmallDisk.isPossible, "needs root, who may mount")
    )
    func full() async throws {
        try await withTemporaryFolder { folder in
            try await withFixture { fixture in
                let disk = try SmallDisk(fixture, at: folder.appending(path: "small"), kilobytes: 256)
                let files = SecureFiles(TestKey().fileKey)
                let path = disk.folder.path() + "/a"
                try files.write(bytes(100_000), to: path)
                let file = try files.open(path, .readingAndWriting)
                #expect { try file.write(bytes(150_000, seed: 7), at: 0) } throws: {
                    ($0 as? SecureFileError)?.errno == ENOSPC
                }
                #expect(try files.contents(of: path) == bytes(100_000))
                let length = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64
                #expect(length == SecureFormat.end(100_000), "it gives back what it had taken")
                #expect { try files.write(bytes(200_000), to: path) } throws: {
                    ($0 as? SecureFileError)?.errno == ENOSPC
                }
                #expect(try files.contents(of: path) == bytes(100_000))
                #expect(try FileManager.default.contentsOfDirectory(atPath: disk.folder.path()) == ["a"])
                #expect { try file.truncate(to: 1 << 39) } throws: { ($0 as? SecureFileError)?.errno == ENOSPC }
                #expect { try file.write([1], at: 1 << 39) } throws: { ($0 as? SecureFileError)?.errno == ENOSPC }
                #expect(try files.contents(of: path) == bytes(100_000), "what cannot be is not begun")
                try file.write([1], at: 0)
                #expect(try file.read(upToCount: 2, at: 0) == [1, bytes(2)[1]])
            }
        }
    }
}

extension [UInt8] {
    /// What a step makes of the bytes of a file.
    fileprivate mutating func apply(_ change: RawFile.Change) {
        switch change {
        case .write(let bytes, let offset):
            let end = Int(offset) + bytes.count
            if count < end { self += [UInt8](repeating: 0, count: end - count) }
            replaceSubrange(Int(offset)..<end, with: bytes)
        case .truncate(let length):
            self = prefix(Int(length)) + [UInt8](repeating: 0, count: Swift.max(0, Int(length) - count))
        case .sync: break
        }
    }
}
