import FleetProtocol
import Yams

/// The YAML documents of one file, with what is wrong with them as YAML.
struct YAMLSource {
    private(set) var roots: [Node] = []
    private(set) var mistakes: [Mistake] = []

    static let maximumSize = Request.maximumSize

    init(_ bytes: [UInt8], name: String) {
        func place(_ mark: Mark) -> Mistake.Place { .init(file: name, line: mark.line, column: mark.column) }
        let start = Mistake.Place(file: name, line: 1, column: 1)
        guard bytes.count <= Self.maximumSize else {
            mistakes = [
                Mistake(place: start, message: "more than \(Self.maximumSize) bytes: split it into several files")
            ]
            return
        }
        // A byte order mark, as some editors write it, says nothing in UTF-8.
        let bytes = Self.withLineFeeds(bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...])
        guard var text = String(validating: bytes, as: UTF8.self) else {
            // Repaired, it differs from the first mistake on.
            let repaired = String(decoding: bytes, as: UTF8.self).utf8
            let valid = zip(bytes, repaired).prefix { $0 == $1 }
            let line = valid.count { $0.0 == 0x0A } + 1
            mistakes = [
                Mistake(place: .init(file: name, line: line, column: 1), message: "not UTF-8: save the file as UTF-8")
            ]
            return
        }
        if Self.isJSON(name) || text.first(where: { !$0.isWhitespace }).map("{[".contains) ?? false {
            text = Self.joiningSurrogates(in: text)
        }
        // Yams gives up at a doubled key. To find every mistake at once, the key is hidden behind characters that no
        // policy has, and the text is read again; places stay the same.
        for _ in 0..<100 {
            do {
                roots = try Self.compose(text)
                return
            } catch YamlError.duplicatedKeysInMapping(let keys, let context) {
                mistakes.append(
                    Mistake(
                        place: place(context.mark),
                        message:
                            "'\(Text.printable(keys.first ?? "", limit: 60))' occurs more than once in this mapping"))
                guard let hidden = Self.hide(keyAt: context.mark, in: text) else { return }
                text = hidden
            } catch let error as Anchors {
                mistakes += error.marks.map { Mistake(place: place($0), message: error.message) }
                return
            } catch {
                mistakes.append(Self.mistake(error, name, text))
                return
            }
        }
    }

    /// JSON is read as YAML; who wrote it need not hear of that.
    static func isJSON(_ name: String) -> Bool { name.lowercased().hasSuffix(".json") }

    /// JSON may write a character beyond the first plane as two escapes (`\ud83d\ude00`), of which YAML knows neither alone.
    private static func joiningSurrogates(in text: String) -> String {
        let pair = /\\u(?<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?<low>[dD][c-fC-F][0-9a-fA-F]{2})|\\./
        return text.replacing(pair) { match in
            guard let high = match.output.high.flatMap({ UInt32($0, radix: 16) }),
                let low = match.output.low.flatMap({ UInt32($0, radix: 16) }),
                let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
            else { return String(match.output.0) }
            return String(scalar)
        }
    }

    static func isHidden(_ key: String) -> Bool {
        key.unicodeScalars.first.map { (0xE000...0xF8FF).contains($0.value) } ?? false
    }

    /// The bytes with a line feed for each end of a line, as all that counts lines here expects it.
    private static func withLineFeeds(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        guard bytes.contains(0x0D) else { return Array(bytes) }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var previous: UInt8 = 0
        for byte in bytes {
            if byte == 0x0D {
                result.append(0x0A)
            } else if byte != 0x0A || previous != 0x0D {
                result.append(byte)
            }
            previous = byte
        }
        return result
    }

    /// Where a text has anchors or aliases.
    private struct Anchors: Error {
        let marks: [Mark]
        let message =
            "anchors and aliases (& and *) are not supported: write the value out, or quote a text that begins so"

        /// - Parameter mask: What stands for the `*` of an alias.
        init?(in roots: [Node], mask: Unicode.Scalar?) {
            var marks: [Mark] = []
            var rest = roots
            while let node = rest.popLast() {
                var isNamed = node.anchor != nil
                switch node {
                case .mapping(let mapping): for (key, value) in mapping { rest += [key, value] }
                case .sequence(let sequence): rest += Array(sequence)
                case .scalar(let scalar):
                    let isMasked = mask != nil && scalar.string.unicodeScalars.first == mask
                    if isMasked, scalar.style == .plain { isNamed = true }
                case .alias: isNamed = true
                }
                if isNamed, let mark = node.mark { marks.append(mark) }
            }
            guard !marks.isEmpty else { return nil }
            self.marks = Array(marks.sorted { ($0.line, $0.column) < ($1.line, $1.column) }.prefix(100))
        }
    }

    /// A few aliases make so many nodes that Yams, which compares keys and takes nodes apart one in another, comes to no
    /// end. So they are looked for where they are plain texts still.
    private static func compose(_ text: String) throws -> [Node] {
        guard text.utf8.contains(UInt8(ascii: "*")) else { return try parse(text) }
        let mask = mask(for: text)
        var masked = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { masked.append(scalar == "*" ? mask : scalar) }
        do {
            _ = try parse(String(masked), mask: mask)
        } catch YamlError.duplicatedKeysInMapping(let keys, let context) {
            let shown = keys.map { $0.replacing(String(mask), with: "*") }
            throw YamlError.duplicatedKeysInMapping(duplicates: shown, context: context)
        }
        return try parse(text)
    }

    /// A private character that a text does not have.
    private static func mask(for text: String) -> Unicode.Scalar {
        let present = Set(text.unicodeScalars)
        let free = (UInt32(0xE000)...0xF8FF).lazy.compactMap { Unicode.Scalar($0) }.first { !present.contains($0) }
        return free ?? "\u{F8FF}"
    }

    private static func parse(_ text: String, mask: Unicode.Scalar? = nil) throws -> [Node] {
        let parser = try Parser(yaml: text, encoding: .utf8)
        var roots: [Node] = []
        while let root = try parser.nextRoot() { roots.append(root) }
        // Nodes know their anchors as long as the parser lives.
        if let anchors = withExtendedLifetime(parser, { Anchors(in: roots, mask: mask) }) { throw anchors }
        return roots
    }

    private static func hide(keyAt mark: Mark, in text: String) -> String? {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.indices.contains(mark.line - 1) else { return nil }
        var scalars = Array(lines[mark.line - 1].unicodeScalars)
        var index = mark.column - 1
        guard scalars.indices.contains(index) else { return nil }
        if scalars[index] == "\"" || scalars[index] == "'" { index += 1 }
        let start = index
        // Letters are enough: what follows the first is never looked at.
        while scalars.indices.contains(index), !":\"' \t,{}[]".unicodeScalars.contains(scalars[index]) { index += 1 }
        guard index > start, let mask = Unicode.Scalar(0xE000 + UInt32(mark.line * 131 + mark.column) % 0x1800) else {
            return nil
        }
        for hidden in start..<index { scalars[hidden] = mask }
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        lines[mark.line - 1] = String(view)
        return lines.joined(separator: "\n")
    }

    private static func mistake(_ error: any Error, _ name: String, _ text: String) -> Mistake {
        func at(_ line: Int, _ column: Int, _ message: String) -> Mistake {
            Mistake(place: .init(file: name, line: max(1, line), column: max(1, column)), message: message)
        }
        let noun = isJSON(name) ? "not JSON" : "not YAML"
        switch error {
        case YamlError.scanner(let context, let problem, let mark, _),
            YamlError.parser(let context, let problem, let mark, _),
            YamlError.composer(let context, let problem, let mark, _):
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let line = lines.indices.contains(mark.line - 1) ? lines[mark.line - 1] : ""
            if line.prefix(while: { $0 == " " || $0 == "\t" }).contains("\t") {
                return at(mark.line, mark.column, "tabs cannot indent YAML: use spaces")
            }
            if problem.contains("expected <document start>") {
                return at(mark.line, mark.column, "something follows the document: put a line with --- between two")
            }
            if problem.hasPrefix("Maximum nesting level") { return at(mark.line, mark.column, "nested too deeply") }
            let around = context.map { " (\($0.text) in line \($0.mark.line))" } ?? ""
            return at(mark.line, mark.column, "\(noun): \(problem)\(around)")
        case YamlError.reader(let problem, let offset, _, _):
            // Yams counts characters here, and scalars in its marks.
            let before = text.prefix(offset ?? 0)
            let line = before.count { $0 == "\n" } + 1
            let column = before.unicodeScalars.reversed().prefix { $0 != "\n" }.count + 1
            return at(line, column, "\(noun): \(problem)")
        default: return at(1, 1, "\(noun): \(Text.printable("\(error)", limit: 200))")
        }
    }
}
