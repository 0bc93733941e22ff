import FleetProtocol
import Yams

/// Walks over YAML by a ``Shape``, makes JSON of it, and collects everything that is wrong on the way.
struct NodeWalk {
    let file: String
    /// Keys were hidden since they occur twice: whoever has such a key of their own has to mend that first.
    private let hasHiddenKeys: Bool
    private(set) var mistakes: [Mistake] = []
    /// Aliases can make a small file say a lot: so much is read, and no more.
    private var budget = 200_000

    private var isJSON: Bool { YAMLSource.isJSON(file) }

    init(file: String, hasHiddenKeys: Bool) {
        self.file = file
        self.hasHiddenKeys = hasHiddenKeys
    }

    func place(_ node: Node) -> Mistake.Place {
        .init(file: file, line: node.mark?.line ?? 1, column: node.mark?.column ?? 1)
    }

    mutating func mistake(at node: Node, _ path: String, _ message: String) {
        mistakes.append(Mistake(place: place(node), message: path.isEmpty ? message : "\(path): \(message)"))
    }

    /// The members of a mapping whose keys are all known; unknown ones are mistakes.
    mutating func members(_ node: Node, _ path: String, known: [String]) -> [String: (key: Node, value: Node)]? {
        guard let pairs = pairs(node, path) else { return nil }
        var members: [String: (key: Node, value: Node)] = [:]
        for (name, key, value) in pairs {
            guard known.contains(name) else {
                let shown = Text.printable(name, limit: 60)
                let joined = path.isEmpty ? shown : "\(path).\(shown)"
                mistake(
                    at: key, joined,
                    "unknown member" + Suggestion.text(for: name, among: known) + ": expected "
                        + known.joined(separator: ", "))
                continue
            }
            members[name] = (key, value)
        }
        return members
    }

    mutating func value(_ node: Node, _ shape: Shape, _ path: String) -> JSONValue? {
        guard spend(node) else { return nil }
        switch shape {
        case .message: return message(node, path).map { .string($0) }
        case .choice(let words): return choice(node, words, path).map { .string($0) }
        case .appID:
            return text(node, path).flatMap { text in attempt(node, path) { .string(try AppID(checking: text).text) } }
        case .flag: return flag(node, path)
        case .whole(let range): return whole(node, range, path)
        case .duration(let range): return duration(node, range, path)
        case .time:
            guard let text = scalar(node, path)?.string else { return nil }
            if let time = Timestamp(text) { return .string(time.description) }
            mistake(at: node, path, "expected a time such as 2026-01-31T08:00:00Z")
            return nil
        case .binary:
            guard let text = text(node, path) else { return nil }
            if Base64URL.decode(text.utf8) != nil { return .string(text) }
            mistake(at: node, path, "expected base64url without padding")
            return nil
        case .list(let element, let limit): return list(node, element, limit, path)
        case .texts: return texts(node, path)
        case .object(let members): return object(node, members, path)
        }
    }

    // MARK: Collections

    private mutating func object(_ node: Node, _ shape: [Shape.Member], _ path: String) -> JSONValue? {
        guard let members = members(node, path, known: shape.map(\.name)) else { return nil }
        var result: [JSONValue.Member] = []
        for member in shape {
            guard let found = members[member.name] else {
                if member.isRequired { mistake(at: node, path, "'\(member.name)' is missing") }
                continue
            }
            if let value = value(found.value, member.shape, "\(path).\(member.name)") {
                result.append(.init(member.name, value))
            }
        }
        return .object(result)
    }

    private mutating func list(_ node: Node, _ element: Shape, _ limit: Int, _ path: String) -> JSONValue? {
        guard case .sequence(let elements) = node else {
            mistake(at: node, path, "expected a list, found \(Self.kind(node))")
            return nil
        }
        guard hasNoTag(node, path) else { return nil }
        guard elements.count <= limit else {
            mistake(at: node, path, "\(elements.count) elements, where at most \(limit) are allowed")
            return nil
        }
        var result: [JSONValue] = []
        for (index, node) in elements.enumerated() {
            if let value = value(node, element, "\(path)[\(index)]") { result.append(value) }
        }
        return .array(result)
    }

    private mutating func texts(_ node: Node, _ path: String) -> JSONValue? {
        guard let pairs = pairs(node, path) else { return nil }
        var members: [JSONValue.Member] = []
        for (name, _, value) in pairs {
            if let text = text(value, "\(path).\(Text.printable(name, limit: 60))") {
                members.append(.init(name, .string(text)))
            }
        }
        return .object(members)
    }

    private mutating func pairs(_ node: Node, _ path: String) -> [(name: String, key: Node, value: Node)]? {
        guard case .mapping(let mapping) = node else {
            mistake(at: node, path, "expected a mapping, found \(Self.kind(node))")
            return nil
        }
        guard hasNoTag(node, path) else { return nil }
        var result: [(String, Node, Node)] = []
        for (key, value) in mapping {
            guard spend(key) else { return nil }
            guard case .scalar(let scalar) = key else {
                mistake(at: key, path, "expected a name as key, found \(Self.kind(key))")
                continue
            }
            guard hasNoTag(key, path) else { continue }
            if scalar.string == "<<", scalar.style == .plain {
                mistake(at: key, path, "merge keys (<<) are not supported")
            } else if !hasHiddenKeys || !YAMLSource.isHidden(scalar.string) {
                result.append((scalar.string, key, value))
            }
        }
        return result
    }

    // MARK: Scalars

    mutating func choice(_ node: Node, _ words: [String], _ path: String) -> String? {
        guard let text = scalar(node, path)?.string else { return nil }
        guard words.contains(text) else {
            mistake(
                at: node, path,
                "unknown value '\(Text.printable(text, limit: 40))'" + Suggestion.text(for: text, among: words)
                    + ": expected " + words.joined(separator: ", "))
            return nil
        }
        return text
    }

    /// A text that YAML, too, reads as text.
    mutating func text(_ node: Node, _ path: String) -> String? {
        guard let scalar = scalar(node, path) else { return nil }
        if let kind = Self.unquotedKind(node) {
            let reads = isJSON ? "" : "YAML reads "
            mistake(
                at: node, path,
                scalar.string.isEmpty
                    ? "expected a text, found nothing: write \"\" for an empty one"
                    : "\(reads)\(Text.printable(scalar.string, limit: 40)) \(isJSON ? "is" : "as") \(kind): quote it")
            return nil
        }
        return scalar.string
    }

    private mutating func message(_ node: Node, _ path: String) -> String? {
        guard let text = text(node, path) else { return nil }
        if let control = text.unicodeScalars.first(where: Text.isControl) {
            mistake(at: node, path, "holds a control character (U+\(Self.hexadecimal(control)))")
            return nil
        }
        guard text.unicodeScalars.count <= 1_000 else {
            mistake(at: node, path, "\(text.unicodeScalars.count) characters, where at most 1000 are allowed")
            return nil
        }
        return text
    }

    private mutating func flag(_ node: Node, _ path: String) -> JSONValue? {
        guard let scalar = scalar(node, path) else { return nil }
        switch scalar.string {
        case "true" where scalar.style == .plain: return true
        case "false" where scalar.style == .plain: return false
        default:
            mistake(at: node, path, "expected true or false, found '\(Text.printable(scalar.string, limit: 40))'")
            return nil
        }
    }

    private mutating func whole(_ node: Node, _ range: ClosedRange<Int64>, _ path: String) -> JSONValue? {
        guard let scalar = scalar(node, path) else { return nil }
        guard scalar.style == .plain, let number = Int64(scalar.string) else {
            mistake(at: node, path, "expected a whole number, found '\(Text.printable(scalar.string, limit: 40))'")
            return nil
        }
        guard range.contains(number) else {
            mistake(at: node, path, "\(number) is outside \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return .integer(number)
    }

    private mutating func duration(_ node: Node, _ range: ClosedRange<Int64>, _ path: String) -> JSONValue? {
        guard let scalar = scalar(node, path) else { return nil }
        guard let seconds = DurationText.seconds(scalar.string) else {
            mistake(at: node, path, "\(DurationText.expectation), found '\(Text.printable(scalar.string, limit: 40))'")
            return nil
        }
        guard range.contains(seconds) else {
            let shortest = DurationText.text(range.lowerBound, like: scalar.string)
            let longest = DurationText.text(range.upperBound, like: scalar.string)
            mistake(at: node, path, "\(scalar.string) is outside \(shortest) to \(longest)")
            return nil
        }
        return .integer(seconds)
    }

    private mutating func scalar(_ node: Node, _ path: String) -> Node.Scalar? {
        guard case .scalar(let scalar) = node else {
            mistake(at: node, path, "expected one value, found \(Self.kind(node))")
            return nil
        }
        return hasNoTag(node, path) ? scalar : nil
    }

    /// What a tag says of a value beside what it looks like would be lost: `!!binary` means other bytes than are written.
    private mutating func hasNoTag(_ node: Node, _ path: String) -> Bool {
        let (tag, usual): (Tag, Tag.Name) =
            switch node {
            case .scalar(let scalar): (scalar.tag, .str)
            case .mapping(let mapping): (mapping.tag, .map)
            case .sequence(let sequence): (sequence.tag, .seq)
            case .alias(let alias): (alias.tag, .implicit)
            }
        if [Tag.Name.implicit.rawValue, usual.rawValue].contains(tag.rawValue) { return true }
        let shown = Text.printable(tag.rawValue.replacing("tag:yaml.org,2002:", with: "!!"), limit: 60)
        mistake(at: node, path, "the tag \(shown) is not supported: leave it out")
        return false
    }

    /// What a rule of `FleetProtocol` says, as a mistake of this place.
    mutating func attempt<Value>(_ node: Node, _ path: String, _ body: () throws -> Value) -> Value? {
        do {
            return try body()
        } catch {
            mistake(at: node, path, "\(error)")
            return nil
        }
    }

    private mutating func spend(_ node: Node) -> Bool {
        budget -= 1
        if budget == 0 { mistake(at: node, "", "the file says too much: more than 200000 values") }
        return budget > 0
    }

    private static func kind(_ node: Node) -> String {
        switch node {
        case .scalar(let scalar): scalar.string.isEmpty && scalar.style == .plain ? "nothing" : "a single value"
        case .mapping: "a mapping"
        case .sequence: "a list"
        case .alias: "an alias"
        }
    }

    private static func unquotedKind(_ node: Node) -> String? {
        guard case .scalar(let scalar) = node, scalar.style == .plain || scalar.style == .any else { return nil }
        return switch Resolver.default.resolveTag(of: node) {
        case .bool: "a boolean"
        case .int, .float: "a number"
        case .null: "null"
        case .timestamp: "a date"
        default: nil
        }
    }

    private static func hexadecimal(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
