/// A word as it stands in a message or a topic, which the caller keeps alive. Compared by bytes: to Swift, a Kelvin sign is
/// equal to a K. Without a `String`, whose making costs more than all comparisons.
package struct Word {
    let bytes: UnsafeBufferPointer<UInt8>

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    func id<ID: Identifier>() -> ID? { ID.isValid(bytes) ? ID(unchecked: text) : nil }

    /// The value of that name, out of a closed set.
    package func named<Value: RawRepresentable<String> & CaseIterable>(_ type: Value.Type = Value.self) -> Value? {
        Value.allCases.first { isEqual($0.rawValue) }
    }

    func unknown(among names: [String]) -> FleetProtocolError {
        FleetProtocolError(
            .value,
            "unknown value '\(Text.printable(text, limit: 40))': expected " + names.joined(separator: ", "))
    }

    package static func ~= (word: StaticString, other: Word) -> Bool { other == word }

    package static func == (word: Word, other: StaticString) -> Bool {
        word.isEqual(UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount))
    }

    func isEqual(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { isEqual($0) }
    }

    func isEqual(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count == other.count else { return false }
        // A plain loop is several times as fast as `elementsEqual`, and this is what reading spends its time with.
        for index in 0..<bytes.count where bytes[index] != other[index] { return false }
        return true
    }
}
