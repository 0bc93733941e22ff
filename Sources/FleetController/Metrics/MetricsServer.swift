import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// Tells Prometheus the controller's figures: `GET /metrics` over HTTP on loopback, to whoever shows the token.
///
/// Bounded: 64 connections at a time, more are closed; each gets one answer, within ten seconds.
final class MetricsServer: Sendable {
    typealias Metrics = @Sendable () async throws -> [Metric]

    private let channel: any Channel

    /// Listens at `address` from here on, and answers with what `metrics` returns. Throws ``FleetControllerError`` when that
    /// cannot be.
    init(
        at address: MetricsAddress, token: String, patience: Duration = .seconds(10), _ metrics: @escaping Metrics
    ) async throws {
        let token = Array(token.utf8)
        let room = Room()
        do {
            channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        guard room.take() else { return channel.close(promise: nil) }
                        channel.closeFuture.whenComplete { _ in room.giveBack() }
                        channel.eventLoop.scheduleTask(in: TimeAmount(patience)) { channel.close(promise: nil) }
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.configureHTTPServerPipeline()
                        try pipeline.addHandler(MetricsHandler(token, metrics))
                    }
                }
                .bind(host: address.host, port: address.port).get()
        } catch {
            throw FleetControllerError(.unusable, "metrics cannot be served at \(address): \(error)")
        }
    }

    /// Where it listens.
    var address: MetricsAddress? {
        guard let address = channel.localAddress, let host = address.ipAddress, let port = address.port else {
            return nil
        }
        return MetricsAddress(host: host, port: port)
    }

    /// Returns when it listens no more: the task was cancelled, or it has failed.
    func run() async throws {
        try await withTaskCancellationHandler {
            try await channel.closeFuture.get()
        } onCancel: {
            channel.close(promise: nil)
        }
    }

    /// Counts the connections.
    private final class Room: Sendable {
        private let open = Mutex(0)
        private static let maximum = 64

        func take() -> Bool {
            open.withLock { open in
                guard open < Self.maximum else { return false }
                open += 1
                return true
            }
        }

        func giveBack() { open.withLock { $0 -= 1 } }
    }
}

/// Reads the one request of a connection.
private final class MetricsHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let token: [UInt8]
    private let metrics: MetricsServer.Metrics
    private var head: HTTPRequestHead?

    init(_ token: [UInt8], _ metrics: @escaping MetricsServer.Metrics) {
        self.token = token
        self.metrics = metrics
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request): head = request
        case .body: break
        case .end:
            guard let head else { return }
            self.head = nil
            let (channel, token, metrics) = (context.channel, token, metrics)
            // Ends with the answer; the connection waits for it, and for no longer than its time.
            channel.eventLoop.makeFutureWithTask {
                await MetricsResponse(to: head, token: token, metrics).parts(isBodyAsked: head.method != .HEAD)
            }.whenSuccess { parts in
                for part in parts.dropLast() { channel.write(part, promise: nil) }
                // Not before all of it has gone.
                channel.writeAndFlush(parts[parts.endIndex - 1]).whenComplete { _ in channel.close(promise: nil) }
            }
        }
    }

    /// What cannot be read is answered by the pipeline.
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// What is answered to one request.
private struct MetricsResponse {
    private let status: HTTPResponseStatus
    private let text: String
    private var headers: HTTPHeaders = ["connection": "close", "cache-control": "no-store"]

    init(to head: HTTPRequestHead, token: [UInt8], _ metrics: () async throws -> [Metric]) async {
        guard Self.shows(head.headers, token) else {
            (status, text) = (.unauthorized, "show the token in the file metrics.token of the fleet's folder\n")
            headers.add(name: "www-authenticate", value: "Bearer")
            return
        }
        guard head.uri.prefix(while: { $0 != "?" }) == "/metrics" else {
            (status, text) = (.notFound, "the metrics are at /metrics\n")
            return
        }
        guard head.method == .GET || head.method == .HEAD else {
            (status, text) = (.methodNotAllowed, "metrics can be read alone\n")
            headers.add(name: "allow", value: "GET, HEAD")
            return
        }
        do {
            text = try await metrics().text
            status = .ok
            headers.add(name: "content-type", value: "text/plain; version=0.0.4; charset=utf-8")
        } catch {
            (status, text) = (.internalServerError, "\(error)\n")
        }
    }

    func parts(isBodyAsked: Bool) -> [HTTPServerResponsePart] {
        var headers = headers
        if !headers.contains(name: "content-type") {
            headers.add(name: "content-type", value: "text/plain; charset=utf-8")
        }
        headers.add(name: "content-length", value: "\(text.utf8.count)")
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        let body: [HTTPServerResponsePart] = isBodyAsked ? [.body(.byteBuffer(ByteBuffer(string: text)))] : []
        return [.head(head)] + body + [.end(nil)]
    }

    /// Takes as long whatever is shown, but for its length.
    private static func shows(_ headers: HTTPHeaders, _ token: [UInt8]) -> Bool {
        let shown = headers["authorization"]
        guard shown.count == 1, let text = shown.first, text.lowercased().hasPrefix("bearer ") else { return false }
        let bytes = Array(text.utf8.dropFirst("bearer ".utf8.count))
        guard bytes.count == token.count else { return false }
        return zip(bytes, token).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
