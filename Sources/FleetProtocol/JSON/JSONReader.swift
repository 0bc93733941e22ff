/// Reads one JSON text (RFC 8259, UTF-8) without building a tree.
///
/// Total: no input can trap it. Strict: duplicate members, lone surrogates, raw control characters and anything behind
/// the value are refused. Bounded: the caller gives the size, the depth is at most 16. Members that the caller does not
/// read are skipped, so unknown ones are ignored; every error names its member.
package struct JSONReader: ~Copyable {
    package static let maximumDepth = 16

    let bytes: UnsafeBufferPointer<UInt8>
    var position = 0
    var depth = 0
    /// Where the names of the objects around the position stand, innermost last: to refuse a second one of a name.
    var names: [Range<Int>] = []

    /// Reads `bytes`, which must hold exactly one value that `body` consumes, and at most `limit` bytes.
    package static func read<Value>(
        _ bytes: [UInt8], limit: Int, _ body: (inout JSONReader) throws -> Value
    ) throws -> Value {
        try bytes.withUnsafeBufferPointer { try read($0, limit: limit, body) }
    }

    /// As above, from memory that the caller keeps alive for the call.
    package static func read<Value>(
        _ bytes: UnsafeBufferPointer<UInt8>, limit: Int, _ body: (inout JSONReader) throws -> Value
    ) throws -> Value {
        guard bytes.count <= limit else {
            throw FleetProtocolError(.tooLarge, "\(bytes.count) bytes, where at most \(limit) are allowed")
        }
        var reader = JSONReader(bytes: bytes)
        let value = try body(&reader)
        reader.skipSpace()
        guard reader.position == bytes.count else { throw reader.syntax("nothing more") }
        return value
    }

    /// Whether the next value is `null`; it is consumed when it is.
    package mutating func null() throws -> Bool {
        skipSpace()
        guard peek() == UInt8(ascii: "n") else { return false }
        try literal("null")
        return true
    }

    package mutating func bool() throws -> Bool {
        skipSpace()
        switch peek() {
        case UInt8(ascii: "t"):
            try literal("true")
            return true
        case UInt8(ascii: "f"):
            try literal("false")
            return false
        default: throw wrongType("true or false")
        }
    }

    /// Calls `body` for each member, in the order of the text. A member that `body` does not read is skipped.
    package mutating func object(_ body: (_ name: String, _ value: inout JSONReader) throws -> Void) throws {
        skipSpace()
        guard peek() == UInt8(ascii: "{") else { throw wrongType("an object") }
        try enter()
        let outer = names.count
        var seen = Set<[UInt8]>()
        skipSpace()
        if take(UInt8(ascii: "}")) { return leave(outer) }
        repeat {
            skipSpace()
            guard peek() == UInt8(ascii: "\"") else { throw syntax("a member name in quotes") }
            let start = position
            let name = try string()
            try refuseDuplicate(name, at: start..<position, from: outer, seen: &seen)
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw syntax("':'") }
            skipSpace()
            let before = position
            do {
                try body(name, &self)
                if position == before { try skip() }
            } catch let error as FleetProtocolError {
                throw error.inside(name)
            }
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw syntax("',' or '}'") }
        leave(outer)
    }

    /// Calls `body` once for each element, in order; it must read it. More than `limit` elements are refused.
    package mutating func array(limit: Int = .max, _ body: (_ element: inout JSONReader) throws -> Void) throws {
        skipSpace()
        guard peek() == UInt8(ascii: "[") else { throw wrongType("an array") }
        try enter()
        skipSpace()
        if take(UInt8(ascii: "]")) { return leave(names.count) }
        var index = 0
        repeat {
            guard index < limit else {
                throw FleetProtocolError(.tooLarge, "more than \(limit) elements")
            }
            skipSpace()
            do {
                let before = position
                try body(&self)
                if position == before { try skip() }
            } catch let error as FleetProtocolError {
                throw error.inside("[\(index)]")
            }
            index += 1
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw syntax("',' or ']'") }
        leave(names.count)
    }

    /// A place to come back to, for a value that may turn out to be unreadable.
    struct Mark {
        let position: Int
        let depth: Int
        let names: Int
    }

    var mark: Mark { Mark(position: position, depth: depth, names: names.count) }

    mutating func rewind(to mark: Mark) {
        position = mark.position
        depth = mark.depth
        names.removeLast(names.count - mark.names)
    }

    /// Passes over one value and says where it stands, to read it by ``read(_:_:)`` once its type is known.
    mutating func extent() throws -> Range<Int> {
        skipSpace()
        let start = position
        try skip()
        return start..<position
    }

    /// Reads a value that ``extent()`` has passed over.
    func read<Value>(_ extent: Range<Int>, _ body: (inout JSONReader) throws -> Value) throws -> Value {
        var inner = JSONReader(bytes: UnsafeBufferPointer(rebasing: bytes[extent]))
        return try body(&inner)
    }

    /// Passes over one value of any kind, checking its syntax.
    package mutating func skip() throws {
        skipSpace()
        switch peek() {
        case UInt8(ascii: "{"): try object { _, value in try value.skip() }
        case UInt8(ascii: "["): try array { try $0.skip() }
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try bool()
        case UInt8(ascii: "n"): try literal("null")
        default: _ = try number()
        }
    }

    private mutating func refuseDuplicate(
        _ name: String, at range: Range<Int>, from outer: Int, seen: inout Set<[UInt8]>
    ) throws {
        // A handful of names is compared byte by byte; only a large object (a configuration) pays for a set. Of bytes: to
        // Swift, strings are equal that are written differently.
        let count = names.count - outer
        let isNew: Bool
        if count < 24, !hasEscape(range) {
            isNew =
                seen.isEmpty
                ? !names[outer...].contains { same($0, range) } : seen.insert(Array(name.utf8)).inserted
        } else {
            if seen.isEmpty {
                for earlier in names[outer...] { seen.insert(Array(unescaped(earlier).utf8)) }
            }
            isNew = seen.insert(Array(name.utf8)).inserted
        }
        guard isNew else { throw FleetProtocolError(.duplicate, "this member occurs twice", at: name) }
        names.append(range)
    }

    private func hasEscape(_ range: Range<Int>) -> Bool { bytes[range].contains(UInt8(ascii: "\\")) }

    private func same(_ left: Range<Int>, _ right: Range<Int>) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<left.count where bytes[left.lowerBound + offset] != bytes[right.lowerBound + offset] {
            return false
        }
        return true
    }

    private func unescaped(_ range: Range<Int>) -> String {
        var reader = JSONReader(bytes: bytes)
        reader.position = range.lowerBound
        return (try? reader.string()) ?? ""  // It has been read once already, so it can be read again.
    }

    private mutating func enter() throws {
        depth += 1
        guard depth <= Self.maximumDepth else {
            throw FleetProtocolError(.tooDeep, "nested deeper than \(Self.maximumDepth) levels")
        }
        position += 1
    }

    private mutating func leave(_ outer: Int) {
        depth -= 1
        names.removeLast(names.count - outer)
    }
}
