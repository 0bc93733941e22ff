/// Whom a client connects to, as whom, and within which bounds.
///
/// Every connection starts clean, and leaves no session behind: nothing is queued for an absent client.
public struct ClientOptions: Sendable {
    /// What the broker publishes when the connection ends without a DISCONNECT.
    public struct Will: Hashable, Sendable {
        /// Where it is published; the broker checks it against the client's rights.
        public var topic: String
        /// Its content.
        public var payload: [UInt8]
        /// Its QoS.
        public var qos: QoS
        /// Whether the broker keeps it.
        public var retain: Bool

        /// Makes a will.
        public init(topic: String, payload: [UInt8], qos: QoS = .atLeastOnce, retain: Bool = false) {
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.retain = retain
        }
    }

    /// Files for an encrypted connection. The broker's certificate and its host name are always verified.
    public struct TLS: Hashable, Sendable {
        /// The certificates (PEM) that may vouch for the broker.
        public var authorityFile: String
        /// The client's certificate chain (PEM), if the broker asks for one.
        public var certificateFile: String?
        /// The key (PEM, without a passphrase) that belongs to `certificateFile`.
        public var keyFile: String?

        /// Names the files; they are read at each connection, so that renewed ones count.
        public init(authorityFile: String, certificateFile: String? = nil, keyFile: String? = nil) {
            self.authorityFile = authorityFile
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// Host name or numeric address of the broker. Names are resolved away from the loop's thread; of a name that has
    /// both IPv4 and IPv6 addresses every second attempt takes IPv4 alone. Of several of one kind libmosquitto tries the
    /// first that the resolver names.
    public var host: String
    /// The broker's TCP port.
    public var port: UInt16
    /// The MQTT client id: a second connection with the same one throws off the first.
    public var clientID: String
    /// The user name, if any.
    public var userName: String?
    /// The password; needs a user name.
    public var password: Password?
    /// After this long without traffic the client pings; it must be 5 s to 65,535 s, or zero for never.
    public var keepAlive: Duration = .seconds(60)
    /// What the broker publishes when the connection ends without a DISCONNECT.
    public var will: Will?
    /// Makes the will of each connection, in place of `will`: called before each attempt, on a thread of the loop's.
    public var makeWill: (@Sendable () -> Will)?
    /// How the connection is encrypted, if at all.
    public var tls: TLS?
    /// How many messages of QoS 1 and 2 the broker may have unacknowledged towards us.
    public var receiveMaximum: UInt16 = 1000
    /// How many publishes of QoS 1 and 2 may be unanswered; the broker's own limit counts when it is lower.
    public var sendMaximum: UInt16 = 1000
    /// The largest packet in bytes that we send, and that we let the broker send: it drops larger ones, and the connection
    /// to one that sends a larger message ends.
    public var maximumPacketSize: Int = 16 << 20
    /// The local address to connect from.
    public var bindAddress: String?
    /// How long an attempt may take until the broker's CONNACK (counted in whole seconds); the look-up of a name, which has
    /// time-outs of its own, not counted.
    public var connectTimeout: Duration = .seconds(10)
    /// How long the broker may leave requests unanswered, when it answers none of them, before the connection is ended and
    /// made anew: a broker whose queue for a client is full drops answers too, without a word.
    public var answerTimeout: Duration = .seconds(60)
    /// How long to wait between attempts.
    public var backoff = Backoff()

    /// Options with every default.
    public init(host: String, port: UInt16 = 1883, clientID: String) {
        self.host = host
        self.port = port
        self.clientID = clientID
    }

    /// For people: where, never as whom.
    var endpoint: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
