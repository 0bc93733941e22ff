@testable import FleetProtocol

/// The keys of the examples and vectors. Everybody knows them: they sign nothing else.
struct TestKeys {
    let root: SigningKey
    let signing: SigningKey
    let other: SigningKey

    init() throws {
        root = try SigningKey(secret: [UInt8](repeating: 1, count: 32))
        signing = try SigningKey(secret: [UInt8](repeating: 2, count: 32))
        other = try SigningKey(secret: [UInt8](repeating: 3, count: 32))
    }
}

extension JSONValue {
    /// With line feeds and two spaces for each level, for files that people read.
    func indented(_ level: Int = 0) -> String {
        let inner = String(repeating: "  ", count: level + 1)
        let outer = String(repeating: "  ", count: level)
        switch self {
        case .object(let members) where !members.isEmpty:
            let lines = members.map { "\(inner)\(JSONValue.string($0.name).jsonText): \($0.value.indented(level + 1))" }
            return "{\n\(lines.joined(separator: ",\n"))\n\(outer)}"
        case .array(let elements) where !elements.isEmpty:
            let lines = elements.map { inner + $0.indented(level + 1) }
            return "[\n\(lines.joined(separator: ",\n"))\n\(outer)]"
        case .null, .bool, .integer, .double, .string, .array, .object: return jsonText
        }
    }
}
