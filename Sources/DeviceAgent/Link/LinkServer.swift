import FleetProtocol
import Glibc
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Serves apps on the agent's socket: lines in, events out. Bounded: a line that is too long ends its connection, and a
/// connection is not read while what it said is being dealt with; of refused registrations few are told.
final class LinkServer: Sendable {
    /// Says what a connection did; called on the server's event loop, for one connection in order.
    typealias Handler = @Sendable (DeviceEvent) -> Void

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let state = Mutex(State())
    private let access: LinkAccess
    private let recheck: Duration
    private let logger: Logger
    private let handler: Handler

    private struct State {
        var path: String?
        var channel: (any Channel)?
        var links: [LinkID: Open] = [:]
        var refused = RefusedApps()
        var next: Int64 = 1
        var isStopped = false

        /// The connection that gives way to a new one of that user: the oldest silent one of theirs, or of whoever has most.
        func inTheWay(of user: uid_t?) -> Open? {
            let silent = Dictionary(grouping: links.filter(\.value.isSilent), by: \.value.user)
            var users = silent[user] ?? []
            if users.count < maximumSilent {
                guard links.count >= maximumConnections else { return nil }
                users = silent.values.max { $0.count < $1.count } ?? []
            }
            return users.min { $0.key.number < $1.key.number }?.value
        }
    }

    private struct Open {
        let channel: any Channel
        let connection: NIOLoopBound<LinkConnection>
        let user: uid_t?
        /// It has not said who it is.
        var isSilent = true
    }

    /// Connections at one time: every app may have one, and a few more knock.
    private static let maximumConnections = 256
    /// Those of one user that have not said who they are: the oldest gives way to the next, so that no user of the machine can
    /// keep other apps off.
    private static let maximumSilent = 64

    /// - Parameter recheck: How often connected processes are held to what `access` says by then.
    init(access: LinkAccess, recheck: Duration = .seconds(30), logger: Logger, handler: @escaping Handler) {
        self.access = access
        self.recheck = recheck
        self.logger = logger
        self.handler = handler
    }

    func start(at path: String) async throws {
        try LinkSocket(path: path).prepare()
        do {
            let channel = try await ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 128)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try self.accept(channel) }
                }
                .bind(unixDomainSocketPath: path).get()
            guard chmod(path, 0o666) == 0 else { throw Files.failure("open \(path) to its users") }
            state.withLock {
                $0.channel = channel
                $0.path = path
            }
        } catch let error as IOError {
            throw DeviceAgentError(.socket, "cannot listen at \(path)", cause: error)
        }
    }

    /// Closes every connection, and removes the socket. No event comes afterwards.
    func stop() async {
        let (channels, path) = state.withLock { state in
            // No id comes back: what waits behind the one before would count as another app's.
            defer { state = State(next: state.next, isStopped: true) }
            return ([state.channel].compactMap { $0 } + state.links.values.map(\.channel), state.path)
        }
        for channel in channels { try? await channel.close() }
        if let path { unlink(path) }
        try? await group.shutdownGracefully()
    }

    func send(_ frame: AgentFrame, to link: LinkID) {
        guard let channel = state.withLock({ $0.links[link]?.channel }) else { return }
        channel.writeAndFlush(frame.line, promise: nil)
    }

    /// Tells every connection that the agent takes the screen, or has given it back.
    func tell(isActive: Bool) {
        for open in state.withLock({ Array($0.links.values) }) {
            open.channel.eventLoop.execute { open.connection.value.tell(isActive: isActive) }
        }
    }

    /// Closes a connection behind all that was sent.
    func close(_ link: LinkID) {
        guard let channel = state.withLock({ $0.links[link]?.channel }) else { return }
        channel.eventLoop.execute { channel.close(promise: nil) }
    }

    /// What a connection said last has been dealt with: it may say more.
    func handled(_ link: LinkID) {
        guard let open = state.withLock({ $0.links[link] }) else { return }
        open.channel.eventLoop.execute { open.connection.value.handled() }
    }

    private func accept(_ channel: any Channel) throws {
        let user = Self.peerUser(of: channel)
        // All connections are on one event loop, this one: it is gone when this returns.
        state.withLock { $0.inTheWay(of: user) }?.connection.value.giveWay()
        let number = state.withLock { state -> Int64? in
            guard !state.isStopped, state.links.count < Self.maximumConnections else { return nil }
            defer { state.next += 1 }
            return state.next
        }
        guard let number else { return channel.close(promise: nil) }
        let link = LinkID(number)
        let connection = LinkConnection(
            link, user: user, access: access, recheck: TimeAmount(recheck), logger: logger, handler: handler,
            isRefusalDue: { [self] app in state.withLock { $0.refused.isDue(app, at: .now) } },
            changed: { [self] change in
                state.withLock {
                    switch change {
                    case .registered: $0.links[link]?.isSilent = false
                    case .ended: $0.links[link] = nil
                    }
                }
            })
        state.withLock {
            $0.links[link] = Open(
                channel: channel, connection: NIOLoopBound(connection, eventLoop: channel.eventLoop), user: user)
        }
        try channel.pipeline.syncOperations.addHandlers([ByteToMessageHandler(LineDecoder()), connection])
    }

    /// The user of the process at the other end (SO_PEERCRED, 17 on Linux).
    private static func peerUser(of channel: any Channel) -> uid_t? {
        guard let provider = channel as? any SocketOptionProvider else { return nil }
        let future: EventLoopFuture<PeerCredentials> = provider.unsafeGetSocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: 17))
        var peer: uid_t?
        // On its own event loop the option is read at once.
        future.assumeIsolated().whenSuccess { peer = $0.uid }
        return peer
    }
}

extension AgentFrame {
    /// As it is written.
    var line: ByteBuffer { ByteBuffer(bytes: json + [UInt8(ascii: "\n")]) }
}

/// The kernel's `struct ucred`, which glibc's headers hide.
private struct PeerCredentials {
    var pid: Int32
    var uid: UInt32
    var gid: UInt32
}
