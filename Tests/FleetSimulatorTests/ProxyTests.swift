import Foundation
import Glibc
import TestSupport
import Testing

@testable import FleetSimulator

@Suite("A way to the broker that can be made bad")
struct ProxyTests {
    /// A listener, a proxy before it, and a connection through both.
    private struct Way {
        let proxy: Proxy
        let client: Int32
        let server: Int32

        static func with(_ body: (Way) throws -> Void) throws {
            let (port, targetPort) = (try Loopback.freePort(), try Loopback.freePort())
            let listener = try #require(Loopback.listen("127.0.0.1", targetPort))
            defer { close(listener) }
            let proxy = try Proxy(host: "127.0.0.1", port: port, to: "127.0.0.1", targetPort)
            defer { proxy.end() }
            let client = try #require(Loopback.connected("127.0.0.1", port))
            defer { close(client) }
            let server = accept(listener, nil, nil)
            defer { close(server) }
            try body(Way(proxy: proxy, client: client, server: server))
        }

        func send(_ text: String, from descriptor: Int32) { _ = write(descriptor, text, text.utf8.count) }

        /// What comes within the time; "" for a close, "reset" for one, nil for nothing.
        func receive(at descriptor: Int32, within milliseconds: Int32 = 5_000) -> String? {
            var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&wait, 1, milliseconds) > 0 else { return nil }
            var buffer = [UInt8](repeating: 0, count: 100)
            let count = read(descriptor, &buffer, buffer.count)
            return count < 0 ? "reset" : String(decoding: buffer[..<count], as: UTF8.self)
        }
    }

    @Test("bytes pass in both directions, and a close is passed on behind them")
    func passes() throws {
        try Way.with { way in
            way.send("there", from: way.client)
            #expect(way.receive(at: way.server) == "there")
            way.send("back", from: way.server)
            #expect(way.receive(at: way.client) == "back")
            way.send("last", from: way.client)
            shutdown(way.client, Int32(SHUT_WR))
            #expect(way.receive(at: way.server) == "last")
            #expect(way.receive(at: way.server) == "")
        }
    }

    @Test("a cut connection is reset at both ends")
    func cut() throws {
        try Way.with { way in
            way.proxy.reset()
            #expect(way.receive(at: way.client) == "reset")
            #expect(way.receive(at: way.server) == "reset")
        }
    }

    @Test("in a black hole bytes vanish without a close, and when it ends the connection does")
    func blackHole() throws {
        try Way.with { way in
            way.proxy.set(.blackHole)
            way.send("lost", from: way.client)
            #expect(way.receive(at: way.server, within: 300) == nil)
            #expect(way.receive(at: way.client, within: 1) == nil)
            way.proxy.set(.open)
            #expect(way.receive(at: way.client) == "reset")
            #expect(way.receive(at: way.server) == "reset")
        }
    }

    @Test("a slow way brings everything, later")
    func slow() throws {
        try Way.with { way in
            way.proxy.set(.slow(milliseconds: 150))
            let start = ContinuousClock.now
            way.send("late", from: way.client)
            #expect(way.receive(at: way.server) == "late")
            #expect(ContinuousClock.now - start >= .milliseconds(150))
        }
    }
}
