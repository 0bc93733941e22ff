package import FleetProtocol
import Foundation

/// Asks a person at the device for its passcode, and tells the running agent.
package struct PasscodePrompt {
    private let agent: AgentInquiry

    /// - Parameter configuration: The path of the device's agent.json.
    package init(configuration: String) throws {
        agent = AgentInquiry(path: try AgentConfiguration.socketPath(configuration))
    }

    /// Reads a line from standard input, without showing it on a terminal.
    package func enter() throws -> PasscodeResult { try ask(.enter(read("Passcode"))) }

    /// Reads the present passcode where there is one, and the new one: a line each. On a terminal the new one is typed twice.
    package func set(isChange: Bool) throws -> PasscodeResult {
        let current = isChange ? try read("Present passcode") : nil
        let new = try read("New passcode")
        if SecretLine.isTyped, try read("New passcode again") != new {
            throw DeviceAgentError(.configuration, "the new passcode was typed in two ways: nothing was changed")
        }
        return try ask(.set(new: new, current: current))
    }

    package func lock() throws -> PasscodeResult { try ask(.lock) }

    /// In one form, however the keyboard composes its letters.
    private func read(_ what: String) throws -> String {
        try SecretLine.read(what).precomposedStringWithCanonicalMapping
    }

    private func ask(_ request: PasscodeRequest) throws -> PasscodeResult {
        guard case .passcodeResult(let result) = try agent.answer(to: .passcode(request)) else {
            throw AgentInquiry.unexpected()
        }
        return result
    }
}

extension PasscodeResult {
    /// For the person who has typed it.
    package var text: String {
        switch kind {
        case .done: message.map { "The passcode is right, but \($0)." } ?? "Done."
        case .wrong: "The passcode is wrong." + consequence + delay
        case .tooEarly: "The passcode was not looked at." + delay
        case .tooWeak: "The passcode is too weak; it lacks: \(message ?? "something that apps ask for")."
        case .notSet: "No passcode has been set on this device: `fleet-agent passcode set` does that."
        case .alreadySet: "A passcode has been set: `fleet-agent passcode set --change` asks for it, and for a new one."
        case .notAsked: "No app of this device asks for a passcode."
        }
    }

    private var consequence: String {
        switch left {
        case nil: ""
        case 0: " It was wrong too often: apps have been locked or wiped, as their policies say."
        case 1: " With one more wrong one apps are locked or wiped."
        case let left?: " With \(left) more wrong ones apps are locked or wiped."
        }
    }

    private var delay: String { wait.map { " The next one is looked at in \($0) s." } ?? "" }
}
