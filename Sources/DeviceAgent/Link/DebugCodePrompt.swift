import FleetProtocol

/// Asks a person at the device for the debug code of an app, and the running agent whether it is right.
package struct DebugCodePrompt {
    private let agent: AgentInquiry

    package init(configuration: AgentConfiguration) { agent = AgentInquiry(path: configuration.socketPath) }

    /// Reads a line from standard input (without showing it, on a terminal) and waits for the agent's answer.
    package func ask(for app: String) throws -> Bool {
        let app = try AppID(checking: app)
        guard case .codeResult(let isRight) = try agent.answer(to: .code(app, try SecretLine.read("Debug code"))) else {
            throw AgentInquiry.unexpected()
        }
        return isRight
    }
}
