import NIOCore
import NIOHTTP1
import NIOPosix

/// Tells Prometheus the controller's figures: `GET /metrics` over HTTP on loopback, to whoever shows the token.
///
/// Bounded: eight connections at a time, more wait to be accepted; each gets one answer, within ten seconds of
/// its turn.
struct MetricsServer {
    private typealias Client = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    private let server: NIOAsyncChannel<Client, Never>
    private let token: [UInt8]
    private static let maximumConnections = 8
    /// How long a connection may take.
    private let patience: Duration

    /// Listens at `address` from here on. Throws ``FleetControllerError`` when that cannot be.
    init(at address: MetricsAddress, token: String, patience: Duration = .seconds(10)) async throws {
        self.token = Array(token.utf8)
        self.patience = patience
        do {
            server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: address.host, port: address.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        return try Client(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw FleetControllerError(.unusable, "metrics cannot be served at \(address): \(error)")
        }
    }

    /// Where it listens.
    var address: MetricsAddress? {
        guard let address = server.channel.localAddress, let host = address.ipAddress, let port = address.port else {
            return nil
        }
        return MetricsAddress(host: host, port: port)
    }

    /// Answers with what `metrics` returns, until the task is cancelled.
    func run(_ metrics: @escaping @Sendable () async throws -> [Metric]) async throws {
        try await server.executeThenClose { clients in
            try await withThrowingTaskGroup(of: Void.self) { group in
                var open = 0
                for try await client in clients {
                    if open == Self.maximumConnections {
                        try await group.next()
                        open -= 1
                    }
                    group.addTask { await answer(client, metrics) }
                    open += 1
                }
            }
        }
    }

    private func answer(_ client: Client, _ metrics: @Sendable () async throws -> [Metric]) async {
        let deadline = client.channel.eventLoop.scheduleTask(in: TimeAmount(patience)) {
            client.channel.close(promise: nil)
        }
        defer { deadline.cancel() }
        // Whoever goes away gets no answer.
        try? await client.executeThenClose { parts, answer in
            var head: HTTPRequestHead?
            for try await part in parts {
                switch part {
                case .head(let request): head = request
                case .body: continue
                case .end:
                    guard let head else { return }
                    let response = await MetricsResponse(to: head, token: token, metrics)
                    return try await answer.write(contentsOf: response.parts(isBodyAsked: head.method != .HEAD))
                }
            }
        }
    }
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
