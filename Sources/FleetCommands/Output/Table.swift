/// Rows under a header, as lines for a terminal.
struct Table: Hashable {
    struct Column: Hashable {
        let title: String
        var isNumber = false
        init(_ title: String, isNumber: Bool = false) {
            self.title = title
            self.isNumber = isNumber
        }
    }

    let columns: [Column]
    private(set) var rows: [[String]] = []

    init(_ columns: [Column]) { self.columns = columns }

    mutating func add(_ cells: [String]) { rows.append(cells) }

    /// The lines, without spaces at their ends. Columns are as wide as their widest cell; numbers stand at the right.
    var lines: [String] {
        var widths = columns.map { TerminalText.width($0.title) }
        for row in rows {
            for (index, cell) in row.prefix(widths.count).enumerated() {
                widths[index] = max(widths[index], TerminalText.width(cell))
            }
        }
        return ([columns.map(\.title)] + rows).map { cells in
            var line = ""
            for (index, cell) in cells.prefix(widths.count).enumerated() {
                let padding = String(repeating: " ", count: widths[index] - TerminalText.width(cell))
                if index > 0 { line += "  " }
                line += columns[index].isNumber ? padding + cell : cell + padding
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}
