import Glibc

extension JSONReader {
    /// A string, unescaped, as valid UTF-8.
    package mutating func string() throws -> String {
        skipSpace()
        guard peek() == UInt8(ascii: "\"") else { throw wrongType("a string") }
        if let plain = plainText() {
            let content = UnsafeBufferPointer(rebasing: bytes[plain.range])
            position = plain.range.upperBound + 1
            if plain.isASCII { return String(decoding: content, as: UTF8.self) }
            guard let text = String(validating: content, as: UTF8.self) else { throw notUTF8 }
            return text
        }
        guard let text = String(validating: try escapedBytes(), as: UTF8.self) else { throw notUTF8 }
        return text
    }

    /// The bytes of a string, unescaped: valid UTF-8, without the detour over a `String`.
    package mutating func stringBytes() throws -> [UInt8] {
        skipSpace()
        guard peek() == UInt8(ascii: "\"") else { throw wrongType("a string") }
        if let plain = plainText() {
            let text = Array(bytes[plain.range])
            position = plain.range.upperBound + 1
            guard plain.isASCII || String(validating: text, as: UTF8.self) != nil else { throw notUTF8 }
            return text
        }
        let text = try escapedBytes()
        guard text.allSatisfy({ $0 < 0x80 }) || String(validating: text, as: UTF8.self) != nil else { throw notUTF8 }
        return text
    }

    /// What `body` makes of a string, which is not made a `String` for it.
    mutating func word<Value>(_ body: (Word) throws -> Value) throws -> Value {
        if let word = plainWord() { return try body(word) }
        let text = try stringBytes()
        return try text.withUnsafeBufferPointer { try body(Word(bytes: $0)) }
    }

    /// A string of plain ASCII; nil, and nothing read, for any other value. It lives as long as the input.
    mutating func plainWord() -> Word? {
        skipSpace()
        guard peek() == UInt8(ascii: "\""), let plain = plainText(), plain.isASCII else { return nil }
        position = plain.range.upperBound + 1
        return Word(bytes: UnsafeBufferPointer(rebasing: bytes[plain.range]))
    }

    /// One of a closed set of names.
    package mutating func oneOf<Value: RawRepresentable<String> & CaseIterable>(
        _ type: Value.Type = Value.self
    ) throws -> Value {
        try word {
            guard let value: Value = $0.named() else { throw $0.unknown(among: Value.allCases.map(\.rawValue)) }
            return value
        }
    }

    private var notUTF8: FleetProtocolError { FleetProtocolError(.syntax, "a string that is not valid UTF-8") }

    /// A string of at most `limit` bytes.
    package mutating func string(limit: Int) throws -> String {
        let text = try string()
        guard text.utf8.count <= limit else {
            throw FleetProtocolError(.tooLarge, "\(text.utf8.count) bytes, where at most \(limit) are allowed")
        }
        return text
    }

    /// A whole number in `range`, which lies within ±2^53.
    package mutating func integer(in range: ClosedRange<Int64> = 0...JSONValue.largestInteger) throws -> Int64 {
        skipSpace()
        guard startsNumber else { throw wrongType("a whole number") }
        let value = try plainInteger() ?? wholeNumber()
        guard range.contains(value) else {
            throw FleetProtocolError(
                .value, "\(value) is outside \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    private mutating func wholeNumber() throws -> Int64 {
        guard let whole = try number().integerValue else {
            throw FleetProtocolError(.value, "expected a whole number below 2^53")
        }
        return whole
    }

    /// A whole number as nearly all are written: up to 15 digits and nothing else; nil, and nothing read, for others.
    private mutating func plainInteger() -> Int64? {
        var index = position
        var value: Int64 = 0
        while index < bytes.count, isDigit(bytes[index]) {
            value = value &* 10 &+ Int64(bytes[index] &- UInt8(ascii: "0"))
            index += 1
            guard index - position <= 15 else { return nil }
        }
        guard index > position, index < bytes.count else { return nil }
        if bytes[position] == UInt8(ascii: "0"), index - position > 1 { return nil }
        switch bytes[index] {
        case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"):
            position = index
            return value
        default: return nil
        }
    }

    package mutating func number() throws -> JSONValue {
        let (start, isWhole) = try numeral()
        guard position - start <= 64 else { throw FleetProtocolError(.tooLarge, "a number of more than 64 digits") }
        if isWhole, position - start <= 17 {
            let isNegative = bytes[start] == UInt8(ascii: "-")
            let magnitude = bytes[(isNegative ? start + 1 : start)..<position]
                .reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
            if magnitude <= JSONValue.largestInteger { return .integer(isNegative ? -magnitude : magnitude) }
        }
        guard let value = Double(String(decoding: bytes[start..<position], as: UTF8.self)), value.isFinite else {
            throw FleetProtocolError(.value, "a number that is too large")
        }
        return .double(value)
    }

    /// Passes over a number of any size. Answers where it began, and whether it has neither fraction nor exponent.
    mutating func numeral() throws -> (start: Int, isWhole: Bool) {
        skipSpace()
        let start = position
        _ = take(UInt8(ascii: "-"))
        guard let first = peek(), isDigit(first) else {
            let isNegative = position > start
            throw isNegative ? syntax("a digit") : wrongType("a value")
        }
        position += 1
        if first != UInt8(ascii: "0") { digits() }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            guard digits() > 0 else { throw syntax("a digit") }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard digits() > 0 else { throw syntax("a digit") }
        }
        return (start, isWhole)
    }

    // MARK: Characters

    func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func take(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        position += 1
        return true
    }

    /// Passes over just these bytes; nothing is read when others follow.
    mutating func take(_ text: [UInt8]) -> Bool {
        guard text.count <= bytes.count - position else { return false }
        let isNext = text.withUnsafeBytes { expected in
            guard let expected = expected.baseAddress, let next = bytes.baseAddress else { return text.isEmpty }
            return memcmp(expected, next + position, text.count) == 0
        }
        if isNext { position += text.count }
        return isNext
    }

    mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    mutating func literal(_ word: StaticString) throws {
        let end = position + word.utf8CodeUnitCount
        let expected = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard end <= bytes.count, bytes[position..<end].elementsEqual(expected) else { throw syntax("\(word)") }
        position = end
    }

    func syntax(_ expected: String) -> FleetProtocolError {
        let found: String
        switch peek() {
        case nil: found = "the end of the text"
        case let byte? where byte > 0x20 && byte < 0x7F: found = "'\(Character(Unicode.Scalar(byte)))'"
        case let byte?: found = "byte 0x\(String(byte, radix: 16))"
        }
        return FleetProtocolError(.syntax, "expected \(expected), found \(found) at byte \(position)")
    }

    func wrongType(_ expected: String) -> FleetProtocolError {
        let found: String
        switch peek() {
        case UInt8(ascii: "{"): found = "an object"
        case UInt8(ascii: "["): found = "an array"
        case UInt8(ascii: "\""): found = "a string"
        case UInt8(ascii: "t"), UInt8(ascii: "f"): found = "a boolean"
        case UInt8(ascii: "n"): found = "null"
        case _ where startsNumber: found = "a number"
        default: return syntax(expected)
        }
        return FleetProtocolError(.type, "expected \(expected), found \(found)")
    }

    private var startsNumber: Bool { peek().map { $0 == UInt8(ascii: "-") || isDigit($0) } ?? false }

    private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    @discardableResult
    private mutating func digits() -> Int {
        let start = position
        while let byte = peek(), isDigit(byte) { position += 1 }
        return position - start
    }

    /// The content of a string without escapes, or nil when it has some (or is not one).
    private func plainText() -> (range: Range<Int>, isASCII: Bool)? {
        let start = position + 1
        var index = start
        var all: UInt8 = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") { return (start..<index, all < 0x80) }
            guard byte >= 0x20, byte != UInt8(ascii: "\\") else { return nil }
            all |= byte
            index += 1
        }
        return nil
    }

    private mutating func escapedBytes() throws -> [UInt8] {
        position += 1
        var result: [UInt8] = []
        // What stands between two escapes is taken whole.
        var start = position
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""):
                result.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<position]))
                position += 1
                return result
            case UInt8(ascii: "\\"):
                if result.isEmpty { result.reserveCapacity(min(bytes.count - start, 1_024)) }
                result.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<position]))
                position += 1
                try escape(into: &result)
                start = position
            case 0..<0x20: throw syntax("a string without raw control characters")
            default: position += 1
            }
        }
        throw syntax("'\"' at the end of a string")
    }

    private mutating func escape(into result: inout [UInt8]) throws {
        guard let byte = peek() else { throw syntax("an escape") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): result.append(byte)
        case UInt8(ascii: "b"): result.append(0x08)
        case UInt8(ascii: "f"): result.append(0x0C)
        case UInt8(ascii: "n"): result.append(0x0A)
        case UInt8(ascii: "r"): result.append(0x0D)
        case UInt8(ascii: "t"): result.append(0x09)
        case UInt8(ascii: "u"):
            var unit = try hexadecimal()
            if unit >= 0xD800, unit < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) {
                let low = try hexadecimal()
                guard low >= 0xDC00, low < 0xE000 else {
                    throw FleetProtocolError(.syntax, "half a surrogate pair in a string")
                }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else {
                throw FleetProtocolError(.syntax, "half a surrogate pair in a string")
            }
            result.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        default:
            position -= 1
            throw syntax("one of \"\\/bfnrtu")
        }
    }

    private mutating func hexadecimal() throws -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek(), let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw syntax("four hexadecimal digits")
            }
            position += 1
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
