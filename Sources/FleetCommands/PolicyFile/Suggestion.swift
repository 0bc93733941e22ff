/// The known word that someone may have meant.
enum Suggestion {
    /// `" (did you mean 'state'?)"`, or nothing when no word is near.
    static func text(for word: String, among known: [String]) -> String {
        let near = known.map { ($0, distance(word.lowercased(), $0.lowercased())) }.min { $0.1 < $1.1 }
        guard let (candidate, distance) = near, distance <= max(1, min(3, word.count / 3)), candidate != word else {
            return ""
        }
        return " (did you mean '\(candidate)'?)"
    }

    /// How many letters must be changed, added, removed or swapped with the next.
    static func distance(_ left: String, _ right: String) -> Int {
        let a = Array(left.unicodeScalars.prefix(64))
        let b = Array(right.unicodeScalars.prefix(64))
        var beforeLast = [Int](repeating: 0, count: b.count + 1)
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
                row.append(best)
            }
            (beforeLast, last) = (last, row)
        }
        return last[b.count]
    }
}
