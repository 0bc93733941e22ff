/// One thing that is wrong with a policy file, and where.
struct Mistake: Hashable, Comparable, CustomStringConvertible {
    let place: Place
    let message: String

    /// A place in a file, lines and columns counted from 1.
    struct Place: Hashable, Comparable, CustomStringConvertible {
        let file: String
        let line: Int
        let column: Int

        static func < (left: Place, right: Place) -> Bool {
            (left.file, left.line, left.column) < (right.file, right.line, right.column)
        }
        var description: String { "\(file):\(line):\(column)" }
    }

    static func < (left: Mistake, right: Mistake) -> Bool {
        left.place == right.place ? left.message < right.message : left.place < right.place
    }

    /// `policy.yaml:7:12: spec.auth.state: …`, as compilers say it.
    var description: String { "\(place): \(message)" }
}
