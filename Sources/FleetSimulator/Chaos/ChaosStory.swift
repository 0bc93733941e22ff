import Foundation
import Glibc

/// All that chaos did and saw, in order: kept in a file, told in part when a law is broken.
struct ChaosStory {
    struct Line {
        let at: Int64
        /// The device or app that it is about; nil for what may concern everybody.
        let subject: String?
        let text: String

        var description: String {
            let seconds = String(format: "%8.3f", Double(at) / 1_000)
            return seconds + "  " + text
        }
    }

    private(set) var lines: [Line] = []
    private let file: UnsafeMutablePointer<FILE>?

    init(file path: String) { file = fopen(path, "we") }

    /// - Parameter isFinding: It stands in the file alone: those who read the end of the story know it.
    mutating func tell(_ text: String, of subject: String? = nil, isFinding: Bool = false, at now: Int64) {
        let line = Line(at: now, subject: subject, text: text)
        if !isFinding { lines.append(line) }
        // Of the oldest only the file knows.
        if lines.count > 20_000 { lines.removeFirst(5_000) }
        guard let file else { return }
        fputs(line.description + "\n", file)
        fflush(file)
    }

    /// The last lines that may concern `subjects`.
    func end(about subjects: Set<String>, count: Int = 40) -> [String] {
        lines.filter { $0.subject.map { subjects.isEmpty || subjects.contains($0) } ?? true }.suffix(count)
            .map(\.description)
    }

    mutating func close() { if let file { fclose(file) } }
}
