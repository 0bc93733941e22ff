/// Writes compact JSON (RFC 8259, UTF-8). Members stand in the order they are written.
///
/// Into memory of its own: an array checks at every byte whether it is shared, which took a third of the time.
package struct JSONWriter: ~Copyable {
    private var memory: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private var count = 0
    /// Whether the next value of the innermost array or object needs a comma before it.
    private var needsComma = false
    /// The time that was written last, and where: those of one message are mostly the same.
    private var lastTime: (time: Timestamp, position: Int)?

    package init(capacity: Int = 256) {
        self.capacity = max(capacity, 64)
        memory = .allocate(capacity: self.capacity)
    }

    deinit { memory.deallocate() }

    /// What has been written.
    package var bytes: [UInt8] { Array(written) }
    var text: String { String(decoding: written, as: UTF8.self) }
    private var written: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: memory, count: count) }

    package mutating func object(_ body: (inout JSONWriter) -> Void) { nested("{", "}", body) }
    package mutating func array(_ body: (inout JSONWriter) -> Void) { nested("[", "]", body) }

    /// - Parameter name: Plain ASCII, which needs no escapes.
    package mutating func member(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
        value(name)
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
        reserve(1)
        put(":")
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

    /// - Parameter text: Plain ASCII, which needs no escapes.
    package mutating func value(_ text: StaticString) {
        separate()
        reserve(text.utf8CodeUnitCount + 3)
        put("\"")
        put(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        put("\"")
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
        append(number.isFinite ? "\(number)" : "null")
    }

    package mutating func value(_ flag: Bool) {
        separate()
        append(flag ? "true" : "false")
    }

    package mutating func null() {
        separate()
        append("null")
    }

    package mutating func value(_ time: Timestamp) {
        separate()
        reserve(Timestamp.length + 2)
        put("\"")
        if let lastTime, lastTime.time == time {
            put(UnsafeBufferPointer(start: memory + lastTime.position, count: Timestamp.length))
        } else {
            lastTime = (time, count)
            count += time.put(UnsafeMutableBufferPointer(start: memory + count, count: Timestamp.length))
        }
        put("\"")
    }

    /// A string that `body` appends, piece by piece.
    mutating func value(_ body: (inout JSONWriter) -> Void) {
        separate()
        reserve(1)
        put("\"")
        body(&self)
        reserve(1)
        put("\"")
    }

    /// A piece of a string, or of anything else that is written: plain ASCII, which needs no escapes.
    mutating func append(_ plain: String) {
        var plain = plain
        plain.withUTF8 { plain in
            reserve(plain.count)
            put(plain)
        }
    }

    /// Writes a value, and says where it stands.
    mutating func noting(_ body: (inout JSONWriter) -> Void) -> Range<Int> {
        separate()
        needsComma = false
        let start = count
        body(&self)
        return start..<count
    }

    /// Writes a value once more that stands at `range`.
    mutating func again(_ range: Range<Int>) {
        separate()
        reserve(range.count)
        put(UnsafeBufferPointer(start: memory + range.lowerBound, count: range.count))
    }

    /// A string whose content is these bytes, which must be valid UTF-8.
    package mutating func value(utf8 content: [UInt8]) {
        separate()
        quote(content)
    }

    private mutating func nested(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void) {
        separate()
        reserve(1)
        put(open)
        needsComma = false
        body(&self)
        reserve(1)
        put(close)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma {
            reserve(1)
            put(",")
        }
        needsComma = true
    }

    private mutating func decimal(_ number: Int64) {
        reserve(20)
        if number < 0 { put("-") }
        var rest = number.magnitude
        let start = count
        repeat {
            put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        var digits = UnsafeMutableBufferPointer(start: memory + start, count: count - start)
        digits.reverse()
    }

    private mutating func quote(_ text: String) {
        var text = text
        text.withUTF8 { quote($0) }
    }

    private mutating func quote(_ content: [UInt8]) { content.withUnsafeBufferPointer { quote($0) } }

    private mutating func quote(_ content: UnsafeBufferPointer<UInt8>) {
        reserve(content.count + 2)
        put("\"")
        // Nearly all texts are plain, and appended whole; others piece by piece between what is escaped.
        var start = 0
        if Self.hasEscapes(content) {
            for (index, byte) in content.enumerated() where Self.isEscaped(byte) {
                put(UnsafeBufferPointer(rebasing: content[start..<index]))
                start = index + 1
                reserve(6 + content.count - start + 1)
                escape(byte)
            }
        }
        put(UnsafeBufferPointer(rebasing: content[start...]))
        put("\"")
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7F
    }

    /// Looks at all bytes, since many are looked at at once then.
    private static func hasEscapes(_ content: UnsafeBufferPointer<UInt8>) -> Bool {
        var found: UInt8 = 0
        for byte in content { found |= isEscaped(byte) ? 1 : 0 }
        return found != 0
    }

    /// Puts up to six bytes.
    private mutating func escape(_ byte: UInt8) {
        put("\\")
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): put(byte)
        case 0x0A: put("n")
        default:
            let digits: StaticString = "0123456789abcdef"
            for scalar in ["u", "0", "0"] as [Unicode.Scalar] { put(scalar) }
            put(digits.utf8Start[Int(byte >> 4)])
            put(digits.utf8Start[Int(byte & 15)])
        }
    }

    // MARK: Memory

    /// Makes room for so many bytes more: only then may they be put.
    private mutating func reserve(_ more: Int) {
        if more > capacity - count { grow(to: count + more) }
    }

    @inline(never)
    private mutating func grow(to least: Int) {
        capacity = max(least, capacity * 2)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.update(from: memory, count: count)
        memory.deallocate()
        memory = larger
    }

    private mutating func put(_ byte: UInt8) {
        memory[count] = byte
        count += 1
    }

    private mutating func put(_ scalar: Unicode.Scalar) { put(UInt8(ascii: scalar)) }

    private mutating func put(_ content: UnsafeBufferPointer<UInt8>) {
        guard let start = content.baseAddress else { return }
        (memory + count).update(from: start, count: content.count)
        count += content.count
    }
}
