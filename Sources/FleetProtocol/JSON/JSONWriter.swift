/// Writes compact JSON (RFC 8259, UTF-8). Members stand in the order they are written.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    /// Whether the next value of the innermost array or object needs a comma before it.
    private var needsComma = false

    package init(capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    package mutating func object(_ body: (inout JSONWriter) -> Void) { nested("{", "}", body) }
    package mutating func array(_ body: (inout JSONWriter) -> Void) { nested("[", "]", body) }

    /// - Parameter name: Plain ASCII, which needs no escapes.
    package mutating func member(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        append(name)
        bytes.append(UInt8(ascii: "\""))
        write(body)
    }

    /// A member whose name is known only now.
    package mutating func member(named name: String, _ body: (inout JSONWriter) -> Void) {
        separate()
        quote(name)
        write(body)
    }

    package mutating func member(named name: String, _ value: some JSONWritable) {
        member(named: name) { value.write(to: &$0) }
    }

    private mutating func write(_ body: (inout JSONWriter) -> Void) {
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
        body(&self)
        needsComma = true
    }

    package mutating func member(_ name: StaticString, _ value: String) { member(name) { $0.value(value) } }
    package mutating func member(_ name: StaticString, _ value: Int64) { member(name) { $0.value(value) } }
    package mutating func member(_ name: StaticString, _ value: Bool) { member(name) { $0.value(value) } }
    package mutating func member(_ name: StaticString, _ value: some JSONWritable) {
        member(name) { value.write(to: &$0) }
    }

    package mutating func member(_ name: StaticString, _ values: some Sequence<some JSONWritable>) {
        member(name) { $0.array { for value in values { value.write(to: &$0) } } }
    }

    /// Nothing at all when there is no value: absent members say "none" throughout.
    package mutating func member(_ name: StaticString, ifPresent value: (some JSONWritable)?) {
        if let value { member(name, value) }
    }

    package mutating func value(_ text: String) {
        separate()
        quote(text)
    }

    package mutating func value(_ number: Int64) {
        separate()
        decimal(number)
    }

    package mutating func value(_ number: Double) {
        separate()
        bytes.append(contentsOf: (number.isFinite ? "\(number)" : "null").utf8)
    }

    package mutating func value(_ flag: Bool) {
        separate()
        append(flag ? "true" : "false")
    }

    package mutating func null() {
        separate()
        append("null")
    }

    /// A string of at most `capacity` bytes, which `body` puts down and counts: ASCII that needs no escapes.
    package mutating func value(plain capacity: Int, _ body: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { buffer in
            let count = body(buffer)
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[..<count]))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// A string whose content is these bytes, which must be valid UTF-8.
    package mutating func value(utf8 content: [UInt8]) {
        separate()
        quote(content)
    }

    private mutating func nested(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(UInt8(ascii: open))
        needsComma = false
        body(&self)
        bytes.append(UInt8(ascii: close))
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func decimal(_ number: Int64) {
        if number < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = number.magnitude
        guard rest > 9 else { return bytes.append(UInt8(ascii: "0") + UInt8(rest)) }
        let start = bytes.count
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    private mutating func quote(_ text: String) {
        var text = text
        text.withUTF8 { quote($0) }
    }

    private mutating func quote(_ content: [UInt8]) { content.withUnsafeBufferPointer { quote($0) } }

    private mutating func quote(_ content: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        // Nearly all texts are plain, and appended whole; others piece by piece between what is escaped.
        var start = 0
        for (index, byte) in content.enumerated() where Self.isEscaped(byte) {
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: content[start..<index]))
            escape(byte)
            start = index + 1
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: content[start...]))
        bytes.append(UInt8(ascii: "\""))
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7F
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        default:
            let digits: StaticString = "0123456789abcdef"
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(digits.utf8Start[Int(byte >> 4)])
            bytes.append(digits.utf8Start[Int(byte & 15)])
        }
    }
}
