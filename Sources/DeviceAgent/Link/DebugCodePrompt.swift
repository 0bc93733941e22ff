import FleetProtocol

/// Asks a person at the device for the debug code of an app, and the running agent whether it is right.
package struct DebugCodePrompt {
    private let agent: AgentInquiry

    /// - Parameter configuration: The path of the device's agent.json.
    package init(configuration: String) throws {
        agent = AgentInquiry(path: try AgentConfiguration.socketPath(configuration))
    }

    /// Reads a line from standard input (without showing it, on a terminal) and waits for the agent's answer.
    package func ask(for app: String) throws -> Bool {
        let app = try AppID(checking: app)
        guard case .codeResult(let isRight) = try agent.answer(to: .code(app, try SecretLine.read("Debug code"))) else {
            throw AgentInquiry.unexpected()
        }
        return isRight
    }
}
