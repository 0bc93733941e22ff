/// The levels of a topic from left to right, from memory that the caller keeps alive.
struct TopicLevels {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// Where the next level begins; behind the end when there is none.
    private var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { position > bytes.count }

    mutating func next() -> Word? {
        guard position <= bytes.count else { return nil }
        let start = position
        var end = start
        while end < bytes.count, bytes[end] != UInt8(ascii: "/") { end += 1 }
        position = end + 1
        return Word(bytes: UnsafeBufferPointer(rebasing: bytes[start..<end]))
    }

    /// The next level as an id, where it is one.
    mutating func id<ID: Identifier>() -> ID? { next()?.id() }

    mutating func take(_ word: StaticString) -> Bool {
        next().map { $0 == word } ?? false
    }

    mutating func take(_ text: String) -> Bool {
        next()?.isEqual(text) ?? false
    }
}
