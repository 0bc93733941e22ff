/// A JSON value as a tree, for what has no type of its own: request bodies on their way, values in the history, output.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    /// Members in the order of the text, each name once.
    case object([Member])

    package struct Member: Hashable, Sendable {
        package let name: String
        package let value: JSONValue

        package init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// 2^53 − 1: every reader in any language agrees on integers up to here.
    package static let largestInteger: Int64 = 9_007_199_254_740_991

    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    package var stringValue: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    /// A whole number within ±2^53. 42.0 and 4.2e1 are whole as well: some languages write no other numbers.
    package var integerValue: Int64? {
        switch self {
        case .integer(let number): number
        case .double(let number) where abs(number) <= Double(Self.largestInteger) && number == number.rounded():
            Int64(number)
        default: nil
        }
    }

    package var arrayValue: [JSONValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    package var memberValues: [Member]? {
        guard case .object(let members) = self else { return nil }
        return members
    }

    package static func object(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { name, value in value.map { Member(name, $0) } })
    }
}

extension JSONValue: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        reader.skipSpace()
        switch reader.peek() {
        case UInt8(ascii: "{"):
            var members: [Member] = []
            try reader.object { name, value in members.append(Member(name.text, try JSONValue(from: &value))) }
            self = .object(members)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try reader.array { elements.append(try JSONValue(from: &$0)) }
            self = .array(elements)
        case UInt8(ascii: "\""): self = .string(try reader.string())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .bool(try reader.bool())
        case UInt8(ascii: "n"):
            try reader.literal("null")
            self = .null
        default: self = try reader.number()
        }
    }

    package func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.null()
        case .bool(let value): writer.value(value)
        case .integer(let value): writer.value(value)
        case .double(let value): writer.value(value)
        case .string(let value): writer.value(value)
        case .array(let elements): writer.array { for element in elements { element.write(to: &$0) } }
        case .object(let members):
            writer.object { for member in members { $0.member(named: member.name, member.value) } }
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
}
