/// Cuts a stream of bytes into lines. Holds at most one unfinished line of `limit` bytes.
struct LineSplitter {
    private let limit: Int
    private var buffer: [UInt8] = []
    /// A line was longer than the limit: nothing more comes out.
    private(set) var isOverflown = false

    init(limit: Int) { self.limit = limit }

    /// The lines that `chunk` completes, without their newlines.
    mutating func lines(in chunk: some Collection<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = chunk[...]
        while !isOverflown {
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            let part = rest[..<(end ?? rest.endIndex)]
            guard buffer.count + part.count <= limit else {
                isOverflown = true
                buffer = []
                break
            }
            buffer.append(contentsOf: part)
            guard let end else { break }
            lines.append(buffer)
            buffer.removeAll(keepingCapacity: true)
            rest = rest[rest.index(after: end)...]
        }
        return lines
    }
}
