public import Dispatch
public import FleetProtocol
public import Logging

extension AppConnect {
    /// Who the app is, and where its device agent listens. Paths that are relative begin at the working directory of the start, and
    /// stay there; but for that of a socket which is longer than 107 bytes then.
    public struct Options: Sendable {
        /// The id that the agent knows the app by.
        public var app: AppID
        /// The path of the agent's socket, at most 107 bytes.
        public var socket: String
        /// Where the agent tells the apps of one user apart by token: this app's.
        public var token: String?
        /// Where the library keeps the install id, and that the app has retired itself until an agent knows: a folder of the
        /// app's own that goes when the app is removed. It is made if it is missing. Default: `fleetbus/<app id>` in
        /// `$XDG_DATA_HOME`, or in `~/.local/share`.
        public var dataFolder: String?
        /// Where the delegate is called. Calls stay serial and in order even if the queue is concurrent. Default: a
        /// queue of the library's own.
        public var queue: DispatchQueue?
        /// Where ``AppConnect/log(_:_:)`` writes, and the library's own debug messages. Default: the label `AppConnect`.
        public var logger: Logger?
        /// A file that has what ``AppConnect/log(_:_:)`` writes as well, for this process alone; made for its user alone if it is
        /// missing. At 1 MB it gets the time as an ending, and a new one begins; 20 are kept in all. Its folder must be writable,
        /// and its name leave room for that: at most 230 bytes. Default: none.
        public var logFile: String?
        /// Where ``AppConnect/copy(_:)`` writes what anybody may read. Default: the agent keeps it, for the apps of the device. All
        /// apps of a device should have one, or none: what one puts there who has it does not find who has none.
        public var pasteboard: (any DevicePasteboard)?
        /// Told of each change of ``AppConnect/connectionState``, also before ready, on the delegate's queue.
        public var connectionChanged: (@Sendable (ConnectionState) -> Void)?
        /// Callbacks that count as missing although the delegate conforms: so that one sample app can play many.
        package var without: Set<Callback> = []

        /// - Parameters:
        ///   - app: The id that the agent knows the app by.
        ///   - socket: The path of the agent's socket.
        public init(app: AppID, socket: String) {
            self.app = app
            self.socket = socket
        }
    }
}
