/// Texts from outside, made safe to show.
package enum Text {
    /// `text` without control characters and bidirectional controls, a space for each tab and end of a line, at most `limit`
    /// characters long, and an ellipsis where it was cut; `bytes` bounds its UTF-8 as well, without the ellipsis.
    ///
    /// What a device or app writes reaches terminals, logs and web pages: it must not move cursors or reorder lines.
    package static func printable(_ text: String, limit: Int = 1_000, bytes: Int = .max) -> String {
        if text.utf8.count <= min(limit, bytes), text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
        var scalars = String.UnicodeScalarView()
        var count = 0
        var size = 0
        var last: Unicode.Scalar?
        for next in text.unicodeScalars {
            defer { last = next }
            guard let scalar = shown(next, behind: last) else { continue }
            size += UTF8.width(scalar)
            guard count < limit, size <= bytes else {
                scalars.append("…")
                break
            }
            scalars.append(scalar)
            count += 1
        }
        return String(scalars)
    }

    private static func shown(_ scalar: Unicode.Scalar, behind last: Unicode.Scalar?) -> Unicode.Scalar? {
        switch scalar {
        case "\n" where last == "\r": nil
        case "\t", "\n", "\r": " "
        default: isControl(scalar) ? nil : scalar
        }
    }

    /// Whether both have the same bytes: to Swift, texts are equal that are written differently.
    package static func isSame(_ left: String, _ right: String) -> Bool {
        var left = left
        return left.withUTF8 { Word(bytes: $0).isEqual(right) }
    }

    /// Whether it moves a cursor or reorders a line.
    package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0: true
        case 0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }
}

extension JSONReader {
    /// A text for people, made printable and cut to `limit` characters.
    package mutating func message(limit: Int = 1_000) throws -> String {
        Text.printable(try string(), limit: limit)
    }
}
