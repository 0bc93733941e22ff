package import ArgumentParser
import FleetHome
import FleetProtocol
import Foundation

/// The operator's tool: the root of its commands.
package struct Fleetctl: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "fleetctl",
        abstract: "Says what the apps of a fleet may do, and shows what they made of it.",
        discussion: """
            A fleet lives in a folder, named by --home or FLEETCTL_HOME.

            EXAMPLES
              fleetctl init ./demo                            make a fleet and its broker
              export FLEETCTL_HOME=$PWD/demo
              fleetctl enroll device till-1 --out ./till-1    make a device known
              fleetctl group set kiosk --priority 10 --add till-1
              fleetctl apply -f policy.yaml --wait --why "new menu"
              fleetctl status                                 who has applied what
              fleetctl get apps -o json                       every acknowledgement
              fleetctl get events --since 1d                  what happened
              fleetctl watch                                  what happens now

            EXIT STATUS
              0   done
              1   refused, or wrong in itself: nothing was changed
              3   applied, but not by everyone, or not within the time of --wait
              4   no answer: where it says so, the change may have been made
              64  wrong usage
              74  done, but the output could not be written
              130 interrupted: applied, where --wait has said so; without a word, before
                  anything was asked for
            """, version: fleetbusVersion,
        subcommands: [
            Init.self, Broker.self, Enroll.self, Device.self, UserCommand.self, Key.self, Group.self, Apply.self,
            Delete.self, Get.self, StatusCommand.self, Watch.self,
        ])

    package init() {}

    /// The command that `arguments` name.
    static func command(of arguments: [String]) throws -> any ParsableCommand {
        try checkNames(in: arguments)
        return try parseAsRoot(WaitOptions.completed(arguments))
    }

    /// Runs the command of the process's arguments, and ends the process with its exit status.
    package static func launch() async -> Never {
        signal(SIGPIPE, SIG_IGN)  // A reader that has gone does not change how the command ends.
        do {
            var command = try command(of: Array(CommandLine.arguments.dropFirst()))
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            Foundation.exit(0)
        } catch let error as CommandError {
            Terminal.note("fleetctl: \(error)")
            Foundation.exit(error.status.rawValue)
        } catch let error as PolicyFile.Mistakes {
            Terminal.note("\(error)\nfleetctl: nothing was changed")
            Foundation.exit(CommandError.Status.refused.rawValue)
        } catch let error as FleetHomeError {
            Terminal.note("fleetctl: \(error)")
            Foundation.exit(CommandError.Status.refused.rawValue)
        } catch {
            exit(withError: error)
        }
    }
}
