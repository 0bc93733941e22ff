package import Foundation
import Glibc

/// A file system of few bytes, in memory, for disks that are full. Only root can make one.
package struct SmallDisk: Sendable {
    package let folder: URL

    /// Where one cannot be made (no root, or a container that may not mount) tests with it are left out, and say so.
    package static let isPossible: Bool = {
        guard geteuid() == 0, let folder = try? makeTemporaryFolder() else { return false }
        defer { rmdir(folder.path()) }
        guard mount("tmpfs", folder.path(), "tmpfs", 0, "size=64k") == 0 else { return false }
        return umount2(folder.path(), Int32(MNT_DETACH)) == 0
    }()

    /// Mounts one on `folder`, until the end of the test.
    package init(_ fixture: Fixture, at folder: URL, kilobytes: Int) throws {
        self.folder = folder
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.path()
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(kilobytes)k,mode=700") == 0 else {
            throw TestFailure("mounting a tmpfs on \(path) failed: \(String(cString: strerror(errno)))")
        }
        fixture.onEnd { _ = umount2(path, Int32(MNT_DETACH)) }
    }

    /// Leaves no byte free.
    package func fill() throws {
        let file = open(folder.appending(path: "full").path(), O_WRONLY | O_CREAT | O_APPEND, 0o600)
        guard file >= 0 else {
            throw TestFailure("filling \(folder.path()) failed: \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        let page = [UInt8](repeating: 1, count: 4_096)
        while write(file, page, page.count) > 0 {}
        guard errno == ENOSPC else {
            throw TestFailure("filling \(folder.path()) failed: \(String(cString: strerror(errno)))")
        }
    }

    package func makeRoom() throws { try FileManager.default.removeItem(at: folder.appending(path: "full")) }
}
