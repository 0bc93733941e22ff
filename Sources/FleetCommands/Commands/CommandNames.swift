package import ArgumentParser
import FleetProtocol

extension ParsableCommand {
    /// What is wrong with the names of commands in `arguments`: argument-parser calls them unexpected, without a word on
    /// which there are, and lets them pass behind `help`.
    package static func checkNames(in arguments: [String]) throws {
        var known: any ParsableCommand.Type = Self.self
        for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
            let commands = known.configuration.subcommands
            guard !commands.isEmpty, !word.hasPrefix("-") else { return }
            guard let next = commands.first(where: { $0._commandName == word }) else {
                let names = commands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
                throw ValidationError(
                    "unknown command '\(Text.printable(word, limit: 40))'" + Suggestion.text(for: word, among: names)
                        + ": expected " + names.joined(separator: ", "))
            }
            known = next
        }
    }
}
