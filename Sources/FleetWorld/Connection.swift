import DeviceAgent
import FleetProtocol
import Mosquitto

/// A part of the world that speaks MQTT.
protocol BusClient: AnyObject {
    var user: User { get }
    var name: String { get }
    func connected(_ connection: Connection)
    func received(_ topic: String, _ payload: [UInt8], isRetained: Bool, on connection: Connection)
    func subscribed(_ token: Int64, on connection: Connection)
    func lost(_ connection: Connection)
    /// Something that the client has sent is with the broker.
    func sent(on connection: Connection)
    /// The broker has refused something that the client has sent.
    func refused(on connection: Connection)
}

extension BusClient {
    func sent(on connection: Connection) {}
    func refused(on connection: Connection) {}
}

/// One connection of a client, as broker and client see it: each direction keeps its order, nothing survives its end.
final class Connection {
    let client: any BusClient
    let will: (topic: String, payload: [UInt8])?
    /// Whether the client, and the broker, think that it stands.
    var isClientThere = true
    var isBrokerThere = true
    var filters: [(filter: Filter, qos: QoS)] = []
    /// What its client asks for again when the broker has refused it.
    var refusals = RefusedSubscriptions()
    var up = Lane()
    var down = Lane()
    /// A hostile broker keeps back what is below this part of the topics.
    var withheld: String?
    /// It shows them so much later.
    var lateness: Int64?
    /// The client has said that it goes: what it said before still arrives.
    var isLeaving = false
    /// Of what the client has sent, something was lost with it: all that it sent later is lost too.
    var isBrokenOff = false
    /// Nothing comes through any more, and nobody has been told.
    var isDead = false
    /// The broker has dropped an answer, and when it gave one last, or what was sent needed none.
    var isOwing = false
    var answeredAt: Int64 = 0
    /// The broker waits for so many acknowledgements of what it has dropped itself that it sends nothing more at QoS 1.
    var isClogged = false

    init(_ client: any BusClient, will: (topic: String, payload: [UInt8])?) {
        self.client = client
        self.will = will
    }
}

/// One direction of a connection. It keeps the order of what goes at QoS 0, or is no message, and of what goes at QoS 1. The
/// latter waits when much is under way already: it is overtaken by the former, and does not overtake.
struct Lane {
    private(set) var last: Int64 = 0
    private var lastAtOnce: Int64 = 0
    var underWay = 0
    /// Until then nothing has arrived.
    private(set) var heldUntil: Int64 = 0

    /// Nothing that is sent from now on arrives before that time.
    mutating func hold(until time: Int64) {
        heldUntil = max(heldUntil, time)
        last = max(last, time)
        lastAtOnce = max(lastAtOnce, time)
    }

    /// When something arrives that would arrive at `time` if it were alone.
    mutating func arrival(of qos: QoS, at time: Int64) -> Int64 {
        guard qos == .atMostOnce else {
            last = max(last, time)
            return last
        }
        lastAtOnce = max(lastAtOnce, time)
        last = max(last, lastAtOnce)
        return lastAtOnce
    }
}

/// A subscription or a right, compiled.
enum Filter: Hashable {
    case exact(String)
    case below(String)
    case oneLevel(String)

    init(_ text: String) {
        if text.hasSuffix("/+/+") {
            self = .below(String(text.dropLast(3)))
        } else if text.hasSuffix("#") {
            self = .below(String(text.dropLast(1)))
        } else if text.hasSuffix("+") {
            self = .oneLevel(String(text.dropLast(1)))
        } else {
            self = .exact(text)
        }
    }

    /// Whether all that it matches begins so.
    func isBelow(_ prefix: String) -> Bool {
        switch self {
        case .exact(let text), .below(let text), .oneLevel(let text): text.hasPrefix(prefix)
        }
    }

    func matches(_ topic: String) -> Bool {
        switch self {
        case .exact(let text): topic == text
        case .below(let prefix): topic.hasPrefix(prefix)
        case .oneLevel(let prefix):
            topic.hasPrefix(prefix) && !topic.utf8.dropFirst(prefix.utf8.count).contains(UInt8(ascii: "/"))
        }
    }
}
