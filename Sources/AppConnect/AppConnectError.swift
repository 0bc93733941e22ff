/// What went wrong between an app and the device agent, or in the way the app used the library.
public struct AppConnectError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of mistake. New ones may come, so a `switch` over them needs a `default`.
    public struct Code: Hashable, Sendable {
        enum Raw: String {
            case propertyAccess = "ACPropertyAccessException"
            case notReady, stopped, notStarted, alreadyStarted, noDelegate, invalidOptions, dataFolder
            case neverDelivered, unsupportedAuth
            case notAllowed, inUse, version, invalid, tooMany
            case unreachable, badFrame
            case invalidContent
        }
        let raw: Raw

        /// A property was read before the ready callback, or after ``AppConnect/stop()``.
        public static let propertyAccess = Code(raw: .propertyAccess)
        /// A method was called before the ready callback.
        public static let notReady = Code(raw: .notReady)
        /// A method was called after ``AppConnect/stop()``.
        public static let stopped = Code(raw: .stopped)
        /// ``AppConnect/start(options:)`` has not been called.
        public static let notStarted = Code(raw: .notStarted)
        /// ``AppConnect/start(options:)`` was called a second time.
        public static let alreadyStarted = Code(raw: .alreadyStarted)
        /// ``AppConnect/start(options:)`` was called before a delegate was set.
        public static let noDelegate = Code(raw: .noDelegate)
        /// An option cannot be used.
        public static let invalidOptions = Code(raw: .invalidOptions)
        /// The app's data folder cannot be made, or its install id not be read or written.
        public static let dataFolder = Code(raw: .dataFolder)
        /// An acknowledgement of a policy of which no callback has begun in this process.
        public static let neverDelivered = Code(raw: .neverDelivered)
        /// An acknowledgement of the authorization state as unsupported: every app implements that callback.
        public static let unsupportedAuth = Code(raw: .unsupportedAuth)
        /// The agent does not let this process be this app.
        public static let notAllowed = Code(raw: .notAllowed)
        /// Another process is connected as this app.
        public static let inUse = Code(raw: .inUse)
        /// Agent and library do not speak the same version of the link.
        public static let version = Code(raw: .version)
        /// The agent did not understand the library.
        public static let invalid = Code(raw: .invalid)
        /// The agent has as many apps as it may.
        public static let tooMany = Code(raw: .tooMany)
        /// The agent's socket cannot be reached, or the agent closed it, or does not answer, or is older than what it is asked for.
        public static let unreachable = Code(raw: .unreachable)
        /// The library did not understand the agent.
        public static let badFrame = Code(raw: .badFrame)
        /// What is to be copied is too large, or its type cannot be used.
        public static let invalidContent = Code(raw: .invalidContent)
    }

    /// The kind of mistake.
    public let code: Code
    /// For people: what was tried, and on what.
    public let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The name of the kind, for logs: a property access error's is `ACPropertyAccessException`.
    public var name: String { code.raw.rawValue }

    /// `ACPropertyAccessException: authState was read before AppConnect was ready`
    public var description: String { "\(name): \(message)" }
}
