import FleetProtocol

/// What a command has found: one value, shown once, in the form that was asked for.
struct Report {
    let value: JSONValue
    /// The lines for people.
    let table: [String]

    init(_ value: JSONValue, table: [String]) {
        self.value = value
        self.table = table
    }

    func lines(as format: OutputFormat) throws -> [String] {
        switch format {
        case .table: table
        case .json: value.prettyLines
        case .yaml: try value.yamlLines
        }
    }
}
