import FleetHome
import FleetProtocol
import Mosquitto

extension Controller {
    /// What is said of a change that may have been made.
    static let doubt = "\nWhether the change was made is not known: look with `fleetctl get`."

    /// A refusal by the controller, in its words.
    static func error(_ failure: Response.Failure) -> CommandError {
        // Its place in the request is left out: who asked wrote a command or a file, and never saw the request.
        switch failure.code {
        case .unavailable, .expired:
            CommandError(.unreachable, "the controller: \(failure.message)", refusal: failure.code)
        case .invalid, .conflict, .forbidden, .notFound, .tooLarge:
            CommandError(.refused, "refused: \(failure.message)", refusal: failure.code)
        }
    }

    /// Why no answer came.
    ///
    /// - Parameter mayBeDone: It may have been a change, and done.
    static func error(
        _ cause: RequestExchange.Cause, mayBeDone: Bool, _ verb: Verb, _ home: FleetHome, _ user: User
    ) -> CommandError {
        let doubt = mayBeDone && verb.isChange ? Self.doubt : ""
        // The first controllers have no answer for what they do not know.
        let isNew = [.plan, .events].contains(verb)
        return switch cause {
        case .nobodyThere:
            CommandError(
                .unreachable,
                "the controller is not running\(doubt)"
                    + (home.context.holder == nil
                        ? "\nStart it with: fleet-controller run --home \(ShellWord.quoted(home.path))" : ""))
        case .noAnswer:
            CommandError(
                .unreachable,
                "the controller does not answer\(doubt)\(isNew ? ": it may be too old to know this question" : "")")
        case .connectionLost(let why):
            CommandError(.unreachable, "the connection to the broker was lost: \(why)\(doubt)")
        case .unsendable(let why):
            CommandError(doubt.isEmpty ? .refused : .unreachable, "the request cannot be sent: \(why)\(doubt)")
        case .refused(let reason):
            CommandError(
                doubt.isEmpty ? .refused : .unreachable,
                "the broker does not let \(user.text) ask '\(verb.rawValue)': "
                    + "reason \(ReasonCode(rawValue: reason))\(doubt)")
        }
    }
}
