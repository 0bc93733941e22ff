/// Why an agent cannot start or go on: what was tried, on what, and what to do.
package struct DeviceAgentError: Error, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        enum Raw { case configuration, store, socket, keystore }
        let raw: Raw
        package static let configuration = Code(raw: .configuration)
        package static let store = Code(raw: .store)
        package static let socket = Code(raw: .socket)
        package static let keystore = Code(raw: .keystore)
    }

    package let code: Code
    package let message: String
    package let cause: (any Error)?

    package init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    package var description: String { cause.map { "\(message): \($0)" } ?? message }
}
