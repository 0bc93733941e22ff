import ArgumentParser
import FleetProtocol
import Foundation

/// Where commands write: results to standard output, everything said about them to standard error.
enum Terminal {
    static func print(_ lines: [String]) throws {
        let reason = write(lines, to: STDOUT_FILENO)
        // A reader that has gone (head, less) is no error of ours, and needs no more of it.
        if reason == EPIPE { throw ExitCode.success }
        guard reason == 0 else {
            throw CommandError(.unwritten, "the output cannot be written: \(String(cString: strerror(reason)))")
        }
    }

    /// Runs `body`, which prints. Whether its reader has gone decides nothing: how the command ends says more.
    static func printToAnyone(_ body: () throws -> Void) throws {
        do { try body() } catch let code as ExitCode where code == .success {}
    }

    /// What cannot be said there can be said nowhere.
    static func note(_ text: String) { _ = write(lines(of: text), to: STDERR_FILENO) }

    /// The lines of what is said, which may quote anybody: nothing in them moves the cursor.
    static func lines(of text: String) -> [String] {
        text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
            .map { Text.printable(String($0), limit: .max) }
    }

    /// Returns the system's reason if it fails, and 0 if not.
    private static func write(_ lines: [String], to descriptor: Int32) -> Int32 {
        guard !lines.isEmpty else { return 0 }
        var bytes = Array((lines.joined(separator: "\n") + "\n").utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&ready, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}
