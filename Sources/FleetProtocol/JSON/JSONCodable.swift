/// Something that has a JSON form.
package protocol JSONWritable {
    func write(to writer: inout JSONWriter)
}

/// Something that can be read back from its JSON form.
package protocol JSONReadable {
    /// Reads exactly one value. Throws a ``FleetProtocolError`` that names the member.
    init(from reader: inout JSONReader) throws
}

package typealias JSONCodable = JSONReadable & JSONWritable

extension JSONWritable {
    /// The compact JSON text, UTF-8.
    package var json: [UInt8] { json(capacity: 256) }

    /// - Parameter capacity: How many bytes it is likely to have.
    func json(capacity: Int) -> [UInt8] {
        var writer = JSONWriter(capacity: capacity)
        write(to: &writer)
        return writer.bytes
    }

    package var jsonText: String { String(decoding: json, as: UTF8.self) }
}

extension JSONReadable {
    /// Reads a text that holds just this value and is at most `limit` bytes long.
    package init(json bytes: [UInt8], limit: Int) throws {
        self = try JSONReader.read(bytes, limit: limit) { try Self(from: &$0) }
    }
}

extension JSONReader {
    package mutating func value<Value: JSONReadable>(_ type: Value.Type = Value.self) throws -> Value {
        try Value(from: &self)
    }

    package mutating func values<Value: JSONReadable>(_ type: Value.Type = Value.self, limit: Int) throws -> [Value] {
        var result: [Value] = []
        try array(limit: limit) { result.append(try Value(from: &$0)) }
        return result
    }

    /// Reads a format version, which must be the one that this build knows.
    package mutating func version(_ known: Int64 = 1) throws -> Int64 {
        let version = try integer()
        guard version == known else {
            throw FleetProtocolError(.version, "format version \(version), where this build knows \(known)")
        }
        return version
    }
}

/// The member's value, or an error that names it.
package func required<Value>(_ value: Value?, _ name: String) throws -> Value {
    guard let value else { throw FleetProtocolError(.missing, "this member is missing", at: name) }
    return value
}

extension String: JSONCodable {
    package init(from reader: inout JSONReader) throws { self = try reader.string() }
    package func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension Int64: JSONCodable {
    package init(from reader: inout JSONReader) throws { self = try reader.integer() }
    package func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension Bool: JSONCodable {
    package init(from reader: inout JSONReader) throws { self = try reader.bool() }
    package func write(to writer: inout JSONWriter) { writer.value(self) }
}

extension JSONReader {
    /// What `read` makes of the next value; nil for one that is not known, which is passed over.
    mutating func known<Value>(_ read: (inout JSONReader) throws -> Value) throws -> Value? {
        let start = mark
        do {
            return try read(&self)
        } catch let error as FleetProtocolError where error.isAboutMeaning {
            rewind(to: start)
            try skip()
            return nil
        }
    }
}
