import FleetProtocol

/// Texts on a terminal.
enum TerminalText {
    /// How many columns a text takes: wide East Asian letters and emoji two, combining marks none.
    static func width(_ text: String) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        return text.reduce(0) { $0 + width($1) }
    }

    private static func width(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        if character.unicodeScalars.contains(where: { $0.value == 0xFE0F || $0.properties.isEmojiPresentation }) {
            return 2
        }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            return 2
        case 0x0300...0x036F, 0x200B...0x200D: return 0
        default: return 1
        }
    }

    /// One line of at most `limit` columns, without control characters.
    static func line(_ text: String, limit: Int = 80) -> String {
        let safe = Text.printable(text, limit: 4_000)
        guard width(safe) > limit else { return safe }
        var result = ""
        var used = 0
        for character in safe {
            let next = width(character)
            guard used + next < limit else { break }
            result.append(character)
            used += next
        }
        return result + "…"
    }
}
