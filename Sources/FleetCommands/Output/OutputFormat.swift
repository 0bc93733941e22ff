import ArgumentParser

/// How a command shows what it has found.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    case table, json, yaml
}
