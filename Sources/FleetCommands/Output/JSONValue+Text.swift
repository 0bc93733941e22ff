import FleetProtocol
import Yams

extension JSONValue {
    /// The value as JSON with two spaces a level; arrays and objects without any on one line.
    var prettyLines: [String] {
        var lines: [String] = []
        appendPretty(to: &lines, prefix: "", indent: "", suffix: "")
        return lines
    }

    private func appendPretty(to lines: inout [String], prefix: String, indent: String, suffix: String) {
        switch self {
        case .array(let elements) where !elements.isEmpty:
            lines.append(indent + prefix + "[")
            for (index, element) in elements.enumerated() {
                element.appendPretty(
                    to: &lines, prefix: "", indent: indent + "  ", suffix: index < elements.count - 1 ? "," : "")
            }
            lines.append(indent + "]" + suffix)
        case .object(let members) where !members.isEmpty:
            lines.append(indent + prefix + "{")
            for (index, member) in members.enumerated() {
                member.value.appendPretty(
                    to: &lines, prefix: JSONValue.string(member.name).lineText + ": ", indent: indent + "  ",
                    suffix: index < members.count - 1 ? "," : "")
            }
            lines.append(indent + "}" + suffix)
        case .null, .bool, .integer, .double, .string, .array, .object:
            lines.append(indent + prefix + lineText + suffix)
        }
    }

    /// The value as JSON on one line.
    var lineText: String { Self.escapingControls(jsonText) }

    /// Outside of quoted texts there are none.
    private static func escapingControls(_ line: String) -> String {
        guard line.unicodeScalars.contains(where: Text.isControl) else { return line }
        return line.unicodeScalars.map { scalar in
            guard Text.isControl(scalar) else { return String(scalar) }
            let hex = String(scalar.value, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        }.joined()
    }

    /// The value as YAML; texts that YAML would read as something else are quoted.
    var yamlLines: [String] {
        get throws {
            try Yams.serialize(node: node, indent: 2, width: -1, allowUnicode: true)
                .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .map { Self.escapingControls(String($0)) }
        }
    }

    private var node: Node {
        switch self {
        case .null: Node("null", Tag(.null))
        case .bool(let flag): Node(flag ? "true" : "false", Tag(.bool))
        case .integer(let number): Node("\(number)", Tag(.int))
        case .double(let number): Node("\(number)", Tag(.float))
        case .string(let text): Node(text, Tag(.str), Self.needsQuotes(text) ? .doubleQuoted : .plain)
        case .array(let elements): Node(elements.map(\.node), .implicit, elements.isEmpty ? .flow : .block)
        case .object(let members):
            Node(
                members.map { (JSONValue.string($0.name).node, $0.value.node) }, .implicit,
                members.isEmpty ? .flow : .block)
        }
    }

    private static func needsQuotes(_ text: String) -> Bool {
        guard let first = text.utf8.first, first > 0x40, first < 0x80 else { return true }
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: "/"):
                true
            default: false
            }
        }
        return !isPlain || Resolver.default.resolveTag(of: Node(text)) != .str
    }
}
