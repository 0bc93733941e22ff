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
        #expect(exchange.handle(.acknowledged(0, of: id), at: .milliseconds(5)) == [.wake(at: .milliseconds(2_005))])
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
        _ = exchange.handle(.acknowledged(0, of: id), at: .zero)
        #expect(exchange.handle(.clock, at: .seconds(1)) == [.wake(at: .seconds(2))])
        #expect(exchange.handle(.clock, at: .seconds(2)) == [.send, .wake(at: .seconds(15))])
        _ = exchange.handle(.acknowledged(0, of: id), at: .seconds(14))
        #expect(exchange.handle(.clock, at: .seconds(15)) == [.finish(.unanswered(.noAnswer, mayBeDone: true))])
    }

    @Test("waits a little for a controller that is not there, and says so")
    func alone() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.acknowledged(16, of: id), at: .zero) == [.wake(at: .milliseconds(250))])
        #expect(exchange.handle(.clock, at: .milliseconds(250)) == [.send, .wake(at: .seconds(15))])
        #expect(
            exchange.handle(.acknowledged(16, of: id), at: .seconds(3)) == [
                .finish(.unanswered(.nobodyThere, mayBeDone: false))
            ])
    }

    @Test(
        "of a controller that had it before it was gone, or may have had it, nobody knows what it did",
        arguments: [true, false])
    func goneBehind(isAcknowledged: Bool) {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        if isAcknowledged {
            _ = exchange.handle(.acknowledged(0, of: id), at: .zero)
            _ = exchange.handle(.clock, at: .seconds(2))
        } else {
            _ = exchange.handle(.disconnected(why: "gone"), at: .zero)
            _ = exchange.handle(.connected, at: .seconds(2))
        }
        _ = exchange.handle(.acknowledged(16, of: id), at: .seconds(2))
        _ = exchange.handle(.clock, at: .seconds(3))
        #expect(
            exchange.handle(.acknowledged(16, of: id), at: .seconds(5)) == [
                .finish(.unanswered(.nobodyThere, mayBeDone: true))
            ]
        )
    }

    @Test("a broker that has come back says of nobody for how long he has been away")
    func aloneAnew() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(16, of: id), at: .zero)
        _ = exchange.handle(.disconnected(why: "gone"), at: .seconds(1))
        _ = exchange.handle(.connected, at: .seconds(5))
        #expect(exchange.handle(.acknowledged(16, of: id), at: .seconds(5)) == [.wake(at: .milliseconds(5_250))])
    }

    @Test("finds a controller that comes back while it waits")
    func comesBack() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(16, of: id), at: .zero)
        _ = exchange.handle(.clock, at: .seconds(1))
        #expect(exchange.handle(.acknowledged(0, of: id), at: .seconds(1)) == [.wake(at: .seconds(3))])
    }

    @Test("does not take for its own what becomes of one before it, which was answered first")
    func another() {
        var exchange = exchange()
        let other = RandomID.random()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.acknowledged(0, of: other), at: .zero) == [])
        #expect(exchange.handle(.acknowledged(135, of: other), at: .zero) == [])
        #expect(exchange.handle(.unacknowledged(why: "gone", of: other), at: .zero) == [])
        #expect(exchange.handle(.unsendable(why: "too large", of: other), at: .zero) == [])
        _ = exchange.handle(.acknowledged(16, of: id), at: .zero)
        _ = exchange.handle(.clock, at: .milliseconds(250))
        #expect(
            exchange.handle(.acknowledged(16, of: id), at: .seconds(3)) == [
                .finish(.unanswered(.nobodyThere, mayBeDone: false))
            ])
    }

    @Test("goes out again on a new connection")
    func reconnected() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.disconnected(why: "gone"), at: .seconds(1))
        #expect(exchange.handle(.acknowledged(0, of: id), at: .seconds(1)) == [])
        #expect(exchange.handle(.connected, at: .seconds(2)) == [.send, .wake(at: .seconds(15))])
        _ = exchange.handle(.disconnected(why: "gone"), at: .seconds(3))
        #expect(
            exchange.handle(.clock, at: .seconds(15)) == [
                .finish(.unanswered(.connectionLost(why: "gone"), mayBeDone: true))
            ])
    }

    @Test("that the broker refuses is not tried again")
    func refused() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(
            exchange.handle(.acknowledged(135, of: id), at: .zero)
                == [.finish(.unanswered(.refused(reason: 135), mayBeDone: false))])
    }

    @Test(
        "that the broker refuses, or cannot take, may have been done when it was sent before", arguments: [true, false])
    func refusedLater(isUnsendable: Bool) {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(0, of: id), at: .zero)
        _ = exchange.handle(.clock, at: .seconds(2))
        let event: RequestExchange.Event =
            isUnsendable ? .unsendable(why: "too large", of: id) : .acknowledged(135, of: id)
        let cause: RequestExchange.Cause = isUnsendable ? .unsendable(why: "too large") : .refused(reason: 135)
        #expect(exchange.handle(event, at: .seconds(2)) == [.finish(.unanswered(cause, mayBeDone: true))])
    }

    @Test("that was never sent is not done")
    func neverSent() {
        var exchange = exchange()
        _ = exchange.handle(.disconnected(why: "gone"), at: .zero)
        #expect(
            exchange.handle(.clock, at: .seconds(15))
                == [.finish(.unanswered(.connectionLost(why: "gone"), mayBeDone: false))])
    }

    @Test("that is still on its way to the broker when its time is over may be done")
    func underWay() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.clock, at: .seconds(15)) == [.finish(.unanswered(.noAnswer, mayBeDone: true))])
    }

    @Test("whose acknowledgement is lost is sent again, also when that is told behind the next connection")
    func unacknowledged() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        #expect(exchange.handle(.connected, at: .seconds(1)) == [.send, .wake(at: .seconds(15))])
        #expect(exchange.handle(.unacknowledged(why: "gone", of: id), at: .seconds(1)) == [.wake(at: .seconds(3))])
        #expect(exchange.handle(.clock, at: .seconds(3)) == [.send, .wake(at: .seconds(15))])
        _ = exchange.handle(.unacknowledged(why: "gone", of: id), at: .seconds(4))
        #expect(
            exchange.handle(.clock, at: .seconds(15))
                == [.finish(.unanswered(.connectionLost(why: "gone"), mayBeDone: true))])
    }

    @Test("that came to somebody late was not without hearers, whatever the broker says of its repetition")
    func lateAcknowledgement() {
        var exchange = exchange()
        _ = exchange.handle(.connected, at: .zero)
        _ = exchange.handle(.acknowledged(16, of: id), at: .zero)
        _ = exchange.handle(.acknowledged(0, of: id), at: .zero)
        _ = exchange.handle(.clock, at: .seconds(3))
        #expect(
            exchange.handle(.acknowledged(16, of: id), at: .seconds(3))
                == [.finish(.unanswered(.nobodyThere, mayBeDone: true))])
    }
}
