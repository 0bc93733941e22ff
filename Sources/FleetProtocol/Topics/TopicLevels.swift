/// One level of a topic. By bytes: to Swift, a Kelvin sign is equal to a K.
struct TopicLevel {
    let bytes: UnsafeBufferPointer<UInt8>

    var text: String { String(decoding: bytes, as: UTF8.self) }

    func id<ID: Identifier>() -> ID? { ID.isValid(bytes) ? ID(unchecked: text) : nil }

    static func ~= (word: StaticString, level: TopicLevel) -> Bool {
        level.isEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    func isEqual(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        bytes.count == other.count && bytes.elementsEqual(other)
    }
}

/// The levels of a topic from left to right, from memory that the caller keeps alive.
struct TopicLevels {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// Where the next level begins; behind the end when there is none.
    private var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { position > bytes.count }

    mutating func next() -> TopicLevel? {
        guard position <= bytes.count else { return nil }
        let start = position
        var end = start
        while end < bytes.count, bytes[end] != UInt8(ascii: "/") { end += 1 }
        position = end + 1
        return TopicLevel(bytes: UnsafeBufferPointer(rebasing: bytes[start..<end]))
    }

    /// The next level as an id, where it is one.
    mutating func id<ID: Identifier>() -> ID? { next()?.id() }

    mutating func take(_ word: StaticString) -> Bool {
        guard let level = next() else { return false }
        return word ~= level
    }

    mutating func take(_ text: String) -> Bool {
        guard let level = next() else { return false }
        var text = text
        return text.withUTF8 { level.isEqual($0) }
    }
}
