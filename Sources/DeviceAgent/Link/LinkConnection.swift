import FleetProtocol
import Glibc
import Logging
import NIOCore

/// One connection of an app, on its event loop.
final class LinkConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let link: LinkID
    private let access: LinkAccess
    private let logger: Logger
    private let handler: LinkServer.Handler
    private let changed: (Change) -> Void
    private let isRefusalDue: (AppID?) -> Bool
    /// How often it is looked whether the process may still be its app.
    private let recheck: TimeAmount
    /// Of the process at the other end.
    private let user: uid_t?
    private var isRegistered = false
    /// Nothing more is heard from it.
    private var isOver = false
    /// Ends a connection that does not say who it is.
    private var silence: Scheduled<Void>?
    private var nextCheck: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// Frames that are not dealt with yet, and whether more may be read once they are.
    private var waiting = 0
    private var isReadHeld = false
    /// What has come in one read with them, and has to wait: nothing more is read before.
    private var held: CircularBuffer<AppFrame> = []
    /// A large frame is being dealt with, or one whose answer is large: alone, and what it is told is read first.
    private var isAlone = false
    /// What it is told of the screen once it reads on: nothing is kept of what was so in between.
    private var isActive: Bool?

    enum Change { case registered, ended }

    /// Frames of one connection that may wait at a time.
    private static let maximumWaiting = 64
    /// How long a process has to say who it is.
    private static let patience = TimeAmount.seconds(10)

    /// - Parameter isRefusalDue: Whether the refusal of an app, or of what is none, is logged and passed on: asked once for each.
    init(
        _ link: LinkID, user: uid_t?, access: LinkAccess, recheck: TimeAmount, logger: Logger,
        handler: @escaping LinkServer.Handler, isRefusalDue: @escaping (AppID?) -> Bool,
        changed: @escaping (Change) -> Void
    ) {
        self.link = link
        self.user = user
        self.access = access
        self.logger = logger
        self.recheck = recheck
        self.handler = handler
        self.isRefusalDue = isRefusalDue
        self.changed = changed
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        silence = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { [weak self] in
            guard let self, let context = self.context else { return }
            refuse(.invalid, "nothing was said for 10 seconds: the first line is a registration", context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Holds back while the agent is busy with what was said, and while the process does not read what it is told. NIO
    /// asks once more only where it can write no more, and then reads what there is left, now or never.
    func read(context: ChannelHandlerContext) {
        if isReadHeld || waiting < Self.maximumWaiting && held.isEmpty && context.channel.isWritable {
            context.read()
        } else {
            isReadHeld = true
        }
    }

    /// One frame has been dealt with.
    func handled() {
        waiting -= 1
        passOn()
        readOn()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        passOn()
        readOn()
        tellActivity()
        context.fireChannelWritabilityChanged()
    }

    private func readOn() {
        guard isReadHeld, held.isEmpty, waiting < Self.maximumWaiting / 2, let context, context.channel.isWritable
        else {
            return
        }
        isReadHeld = false
        context.read()
    }

    /// The agent takes the screen, or has given it back.
    func tell(isActive: Bool) {
        self.isActive = isActive
        tellActivity()
    }

    private func tellActivity() {
        guard let isActive, !isOver, let context, context.channel.isWritable else { return }
        self.isActive = nil
        context.writeAndFlush(NIOAny(AgentFrame.activity(isActive: isActive).line), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        let line = Array(unwrapInboundIn(data).readableBytesView)
        do {
            let frame = try AppFrame(json: line, limit: Link.maximumLine)
            try take(frame, context)
        } catch let error as FleetProtocolError {
            refuse(error.code == .version ? .version : .invalid, "\(error)", context)
        } catch {
            refuse(.invalid, "\(error)", context)
        }
    }

    private func take(_ frame: AppFrame, _ context: ChannelHandlerContext) throws {
        switch frame {
        case .register(let registration):
            silence?.cancel()
            guard let uid = user else {
                return refuse(.notAllowed, "the user of this process cannot be told", context)
            }
            if let reason = access.refusal(of: registration, uid: uid) {
                return refuse(as: registration.app, reason, context)
            }
            checkLater(registration, uid, context)
            isRegistered = true
            changed(.registered)
            pass(.registered(link, registration))
        case .code, .passcode:
            guard let uid = user, uid == geteuid() || uid == 0 else {
                return refuse(.notAllowed, "only the agent's own user, or root, may enter a code or passcode", context)
            }
            silence?.cancel()
            pass(.frame(link, frame))
        default:
            guard isRegistered else { return refuse(.invalid, "the first line must be a registration", context) }
            held.append(frame)
            passOn()
        }
    }

    /// What the process may be can be taken back while it is connected.
    private func checkLater(_ registration: Registration, _ uid: uid_t, _ context: ChannelHandlerContext) {
        nextCheck?.cancel()
        nextCheck = context.eventLoop.assumeIsolated().scheduleTask(in: recheck) { [weak self] in
            guard let self, let context = self.context, !isOver else { return }
            if let reason = access.refusal(of: registration, uid: uid) {
                refuse(as: registration.app, reason, context)
            } else {
                checkLater(registration, uid, context)
            }
        }
    }

    /// Passes on what waits, in order, as far as there is room for it.
    private func passOn() {
        while !isOver, let frame = held.first, waiting < Self.maximumWaiting, !isAlone || waiting == 0 {
            guard !frame.isOfPasteboard || waiting == 0 && context?.channel.isWritable == true else { return }
            isAlone = frame.isOfPasteboard
            held.removeFirst()
            pass(.frame(link, frame))
        }
    }

    /// Nothing more comes: what was said counts, but for questions that nobody waits for.
    private func passOnAll() {
        isOver = true
        for frame in held {
            if case .paste = frame { continue }
            pass(.frame(link, frame))
        }
        held = []
    }

    private func pass(_ event: DeviceEvent) {
        waiting += 1
        handler(event)
    }

    /// Others of its user are waiting, and it has not said who it is.
    func giveWay() {
        guard let context, !isOver else { return }
        refuse(.invalid, "this user has too many connections that say nothing", context)
    }

    /// The process may not be the app.
    private func refuse(as app: AppID, _ reason: String, _ context: ChannelHandlerContext) {
        let isDue = isRefusalDue(app)
        if isDue { handler(.registrationRefused(app, reason: reason)) }
        refuse(.notAllowed, reason, context, isLogged: isDue)
    }

    private func refuse(
        _ code: AgentFrame.Refusal, _ message: String, _ context: ChannelHandlerContext, isLogged: Bool? = nil
    ) {
        // It may quote what anybody on this machine has said.
        let text = Text.printable(message, limit: 500)
        if isLogged ?? isRefusalDue(nil) {
            logger.warning("refused a connection", metadata: ["code": "\(code.rawValue)", "reason": "\(text)"])
        }
        passOnAll()
        context.writeAndFlush(NIOAny(AgentFrame.refused(code, message: text).line), promise: nil)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        silence?.cancel()
        nextCheck?.cancel()
        passOnAll()
        changed(.ended)
        if isRegistered { handler(.linkClosed(link)) }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is LineDecoder.LineTooLong {
            return refuse(.invalid, "a line of more than \(Link.maximumLine) bytes", context)
        }
        context.close(promise: nil)
    }
}

extension AppFrame {
    /// It is large, or its answer is.
    fileprivate var isOfPasteboard: Bool {
        switch self {
        case .copy, .paste: true
        default: false
        }
    }
}
