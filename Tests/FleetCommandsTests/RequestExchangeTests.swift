import FleetProtocol
import Testing

@testable import FleetCommands

@Suite("A request")
struct RequestExchangeTests {
    private let id = RandomID.random()

    private func exchange() -> RequestExchange { RequestExchange(id: id, limit: .seconds(15)) }
    private func response(to id: RandomID) -> [UInt8] {
        Response(id: id, result: .success(.object(["a": 1]), next: nil)).json
    }

    @Test("is sent once connected, and ends with its answer")
    func answered() {
        var exchange = exchange()
        #expect(exchange.handle(.connected, at: .zero) == [.send, .wake(at: .seconds(15))])
        #expect(exchange.handle(.acknowledged(0), at: .milliseconds(5)) == [.wake(at: .milliseconds(2_005))])
        #expect(exchange.handle(.received(Array("{}".utf8)), at: .milliseconds(6)) == [])
        #expect(exchange.handle(.received(response(to: .random())), at: .milliseconds(6)) == [])
        #expect(
            exchange.handle(.received(response(to: id)), at: .milliseconds(7))
                == [.finish(.answered(.success(.object(["a": 1]), next: nil)))])
        #expect(exchange.handle(.clock, at: .seconds(20)) == [])
    }

    @Test("is answered even before the broker has acknowledged it")
    func early() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.received(response(to: id)), at: .zero).count == 1)
    }

    @Test("is sent again while nobody answers, until its time is over")
    func repeated() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(0), at: .zero)
        #expect(exchange.handle(.clock, at: .seconds(1)) == [.wake(at: .seconds(2))])
        #expect(exchange.handle(.clock, at: .seconds(2)) == [.send, .wake(at: .seconds(15))])
        _ = exchange.handle(.acknowledged(0), at: .seconds(14))
        #expect(exchange.handle(.clock, at: .seconds(15)) == [.finish(.noAnswer)])
    }

    @Test("waits a little for a controller that is not there, and says so")
    func alone() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.acknowledged(16), at: .zero) == [.wake(at: .milliseconds(250))])
        #expect(exchange.handle(.clock, at: .milliseconds(250)) == [.send, .wake(at: .seconds(15))])
        #expect(exchange.handle(.acknowledged(16), at: .seconds(3)) == [.finish(.nobodyThere(mayBeDone: false))])
    }

    @Test(
        "of a controller that had it before it was gone, or may have had it, nobody knows what it did",
        arguments: [true, false])
    func goneBehind(isAcknowledged: Bool) {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        if isAcknowledged {
            _ = exchange.handle(.acknowledged(0), at: .zero)
            _ = exchange.handle(.clock, at: .seconds(2))
        } else {
            _ = exchange.handle(.disconnected(why: "gone"), at: .zero)
            _ = exchange.handle(.connected, at: .seconds(2))
        }
        _ = exchange.handle(.acknowledged(16), at: .seconds(2))
        _ = exchange.handle(.clock, at: .seconds(3))
        #expect(exchange.handle(.acknowledged(16), at: .seconds(5)) == [.finish(.nobodyThere(mayBeDone: true))])
    }

    @Test("a broker that has come back says of nobody for how long he has been away")
    func aloneAnew() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(16), at: .zero)
        _ = exchange.handle(.disconnected(why: "gone"), at: .seconds(1))
        _ = exchange.handle(.connected, at: .seconds(5))
        #expect(exchange.handle(.acknowledged(16), at: .seconds(5)) == [.wake(at: .milliseconds(5_250))])
    }

    @Test("finds a controller that comes back while it waits")
    func comesBack() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(16), at: .zero)
        _ = exchange.handle(.clock, at: .seconds(1))
        #expect(exchange.handle(.acknowledged(0), at: .seconds(1)) == [.wake(at: .seconds(3))])
    }

    @Test("goes out again on a new connection")
    func reconnected() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.disconnected(why: "gone"), at: .seconds(1))
        #expect(exchange.handle(.acknowledged(0), at: .seconds(1)) == [])
        #expect(exchange.handle(.connected, at: .seconds(2)) == [.send, .wake(at: .seconds(15))])
        _ = exchange.handle(.disconnected(why: "gone"), at: .seconds(3))
        #expect(exchange.handle(.clock, at: .seconds(15)) == [.finish(.connectionLost(why: "gone"))])
    }

    @Test("that the broker refuses is not tried again")
    func refused() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.acknowledged(135), at: .zero) == [.finish(.refused(reason: 135))])
    }
}
