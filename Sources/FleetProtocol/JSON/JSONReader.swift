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
    /// Whether members that nobody reads are refused, where they are skipped otherwise: a person is told of them.
    package var refusesUnknown = false
    /// The names of the objects around the position, innermost last: to refuse a second one of a name.
    private var names: [Word] = []

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

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
    package mutating func object(_ body: (_ name: Word, _ value: inout JSONReader) throws -> Void) throws {
        skipSpace()
        guard peek() == UInt8(ascii: "{") else { throw wrongType("an object") }
        try enter()
        if names.capacity == 0 { names.reserveCapacity(Names.few) }
        var seen = Names(outer: names.count)
        skipSpace()
        if take(UInt8(ascii: "}")) { return leave(seen.outer) }
        repeat {
            skipSpace()
            guard peek() == UInt8(ascii: "\"") else { throw syntax("a member name in quotes") }
            if let name = plainWord() {
                try member(name, isNew: seen.isNew(name, in: &names), body)
            } else {
                let name = try stringBytes()
                let isNew = seen.isNew(name, in: names)
                try name.withUnsafeBufferPointer { try member(Word(bytes: $0), isNew: isNew, body) }
            }
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw syntax("',' or '}'") }
        leave(seen.outer)
    }

    private mutating func member(
        _ name: Word, isNew: Bool, _ body: (Word, inout JSONReader) throws -> Void
    ) throws {
        guard isNew else { throw FleetProtocolError(.duplicate, "this member occurs twice", at: name.text) }
        skipSpace()
        guard take(UInt8(ascii: ":")) else { throw syntax("':'") }
        skipSpace()
        let before = position
        do {
            try body(name, &self)
            guard position == before else { return }
            guard !refusesUnknown else { throw FleetProtocolError(.value, "this member is not known here") }
            try skip()
        } catch let error as FleetProtocolError {
            throw error.inside(name.text)
        }
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

    /// What has been read since.
    func text(from mark: Mark) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[mark.position..<position])
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
        default: _ = try numeral()
        }
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

/// The names of one object. A handful is compared one by one, and that only with what may be equal; a large object (a
/// configuration) pays for a set. By bytes: to Swift, strings are equal that are written differently.
private struct Names {
    /// How many names are those of the objects around it.
    let outer: Int
    static let few = 24
    private var hashes: UInt64 = 0
    private var set: Set<[UInt8]>?

    init(outer: Int) { self.outer = outer }

    mutating func isNew(_ name: Word, in names: inout [Word]) -> Bool {
        guard set == nil, names.count - outer < Self.few else { return isNew(Array(name.bytes), in: names) }
        let hash = Self.hash(name.bytes)
        if hashes & hash != 0, names[outer...].contains(where: { $0.isEqual(name.bytes) }) { return false }
        hashes |= hash
        names.append(name)
        return true
    }

    mutating func isNew(_ name: [UInt8], in names: [Word]) -> Bool {
        var all = set.take() ?? Set(names[outer...].map { Array($0.bytes) })
        defer { set = all }
        return all.insert(name).inserted
    }

    /// One bit of 64.
    private static func hash(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        guard let first = name.first, let last = name.last else { return 1 }
        return 1 << UInt64((first ^ last &<< 2 ^ UInt8(truncatingIfNeeded: name.count &<< 3)) & 63)
    }
}
