import Foundation

/// Where commands write: results to standard output, everything said about them to standard error.
enum Terminal {
    static func print(_ lines: [String]) { write(lines, to: .standardOutput) }
    static func note(_ line: String) { write([line], to: .standardError) }

    private static func write(_ lines: [String], to handle: FileHandle) {
        guard !lines.isEmpty else { return }
        // A reader that has gone (head, less) is no error of ours.
        try? handle.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
    }
}
