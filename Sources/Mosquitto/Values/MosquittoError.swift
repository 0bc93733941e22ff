/// Why the broker could not be reached, or would not do what was asked. It never holds credentials.
public struct MosquittoError: Error, Hashable, Sendable {
    /// What kind of failure it is; new kinds may be added.
    public struct Code: Hashable, Sendable {
        enum Raw: Hashable, Sendable {
            case invalidArgument, payloadTooLarge, notConnected, connectionLost, connectionFailed, connectionRefused
            case authenticationRefused, subscriptionRefused, bufferFull, timedOut, tls, closed, system, library
        }
        let raw: Raw

        /// A topic, filter, option or payload that no broker would accept; nothing was sent.
        public static let invalidArgument = Code(raw: .invalidArgument)
        /// The packet is larger than MQTT, the options or the broker allow; nothing was sent.
        public static let payloadTooLarge = Code(raw: .payloadTooLarge)
        /// There is no connection at this moment; nothing was sent.
        public static let notConnected = Code(raw: .notConnected)
        /// The connection went down before the broker answered, or went on for 65,535 requests without: whether it has the
        /// message is not known.
        public static let connectionLost = Code(raw: .connectionLost)
        /// No connection could be made: the name, the address, the network.
        public static let connectionFailed = Code(raw: .connectionFailed)
        /// The broker answered the attempt with a refusal, see `reason`.
        public static let connectionRefused = Code(raw: .connectionRefused)
        /// The broker refused this client id, user or password, see `reason`.
        public static let authenticationRefused = Code(raw: .authenticationRefused)
        /// The broker refused one or more filters; `message` names them, `reason` is the first one's.
        public static let subscriptionRefused = Code(raw: .subscriptionRefused)
        /// As many publishes as the options and the broker allow are still unanswered; nothing was sent.
        public static let bufferFull = Code(raw: .bufferFull)
        /// No answer within the time that the options allow.
        public static let timedOut = Code(raw: .timedOut)
        /// A certificate or key is missing, unreadable or not trusted.
        public static let tls = Code(raw: .tls)
        /// The client has been closed.
        public static let closed = Code(raw: .closed)
        /// The operating system refused something.
        public static let system = Code(raw: .system)
        /// libmosquitto reported something else, see `status`.
        public static let library = Code(raw: .library)
    }

    /// What kind of failure it is.
    public let code: Code
    /// For people: what was tried, on what, and what came of it.
    public let message: String
    /// The broker's own reason, when it gave one.
    public let reason: ReasonCode?
    /// For the log: libmosquitto's status, or the error number when `code` is `.system`.
    public let status: Int32?

    /// Makes an error; `message` says what was tried, and on what.
    public init(_ code: Code, _ message: String, reason: ReasonCode? = nil, status: Int32? = nil) {
        self.code = code
        self.message = message
        self.reason = reason
        self.status = status
    }
}

extension MosquittoError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
