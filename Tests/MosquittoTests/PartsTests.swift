import TestSupport
import Testing

@testable import Mosquitto

@Suite("The parts without a broker")
struct PartsTests {
    private struct Highest: RandomNumberGenerator {
        mutating func next() -> UInt64 { .max }
    }

    @Test("waits double up to their cap, are a random part of it, and never overflow")
    func backoff() {
        let backoff = Backoff(minimum: .milliseconds(100), maximum: .seconds(2))
        #expect(
            [1, 2, 3, 5, 6, 63, 64, 1000, .max].map { backoff.ceiling(failures: $0) / 1_000_000 }
                == [100, 200, 400, 1600, 2000, 2000, 2000, 2000, 2000])
        var highest = Highest()
        #expect(backoff.delay(failures: 3, using: &highest) <= .milliseconds(400))
        var random = SystemRandomNumberGenerator()
        let delays = Set((0..<100).map { _ in backoff.delay(failures: 9, using: &random) })
        #expect(delays.count > 50 && delays.allSatisfy { $0 >= .zero && $0 <= .seconds(2) })
        #expect(Backoff(minimum: .zero, maximum: .zero).delay(failures: 5, using: &random) == .zero)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(-5).nanoseconds == 0)
    }

    @Test("timers come by their time, equal ones in order, and cancelled ones leave no trace")
    func timers() {
        var queue = TimerQueue()
        for id in 1...2000 { queue.add(id: UInt64(id), due: UInt64((id * 7919) % 500)) {} }
        for id in 1...1900 { queue.cancel(id: UInt64(id)) }
        #expect(queue.count == 100)
        var popped = 0
        var last: UInt64 = 0
        while let due = queue.nextDue {
            #expect(due >= last)
            last = due
            while queue.popDue(now: due) != nil { popped += 1 }
        }
        #expect(popped == 100)
    }

    @Test("a queue keeps its order over many turns")
    func fifo() {
        var queue = FIFO<Int>()
        var next = 0
        for number in 0..<5000 {
            queue.append(number)
            if number % 3 == 0 {
                #expect(queue.popFirst() == next)
                next += 1
            }
        }
        #expect(queue.count == 5000 - next)
        #expect(queue.removeAll() == Array(next..<5000))
        #expect(queue.popFirst() == nil)
    }

    @Test("messages gather while many come, and no longer when the rush is over or nobody wants it")
    func rush() {
        var rush = Rush(pause: 3)
        #expect(rush.pause(at: 0) == 0)
        // Ten in a millisecond, and a window later the loop waits.
        for time in stride(from: UInt64(0), to: 4_000_000, by: 100_000) {
            rush.add(1)
            #expect(rush.pause(at: time) == 0)
        }
        #expect(rush.pause(at: 4_000_000) == 3)
        #expect(rush.pause(at: 7_000_000) == 3)
        // A thousand in a second are none.
        for time in stride(from: UInt64(8_000_000), to: 12_000_000, by: 1_000_000) {
            rush.add(1)
            #expect(rush.pause(at: time) == 0)
        }
        // What came before a silence says nothing of what comes behind it.
        rush.add(1_000)
        #expect(rush.pause(at: 500_000_000) == 0)
        var never = Rush(pause: 0)
        never.add(1_000)
        #expect(never.pause(at: 4_000_000) == 0)
    }

    @Test("a consumer that waits gets every message once, however many come until it runs")
    func burst() async {
        let buffer = MessageBuffer(capacity: 100)
        let consumer = Task {
            var topics: [String] = []
            while let batch = await buffer.next(most: 7, consumed: { _ in }) { topics += batch.map(\.topic) }
            return topics
        }
        for number in 0..<50 {
            buffer.append(Message(topic: "\(number)", payload: []))
            if number % 10 == 0 { await Task.yield() }
        }
        buffer.finish()
        #expect(await consumer.value == (0..<50).map(String.init))
    }

    @Test("an answer may come before its waiter, and only the first counts")
    func pending() async throws {
        let early = Pending<Int>()
        early.settle(.success(1))
        early.settle(.failure(CancellationError()))
        #expect(try await early.wait() == 1)
        let late = Pending<Int>()
        async let value = late.wait()
        late.settle(.success(2))
        #expect(try await value == 2)
        let given = Pending<Int>()
        let task = Task { try await given.wait() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        given.settle(.success(3))
    }

    @Test("a buffer tells what was consumed in steps, and ends behind what it holds")
    func buffer() async {
        let buffer = MessageBuffer(capacity: 4)
        let message = Message(topic: "t", payload: [])
        for _ in 0..<4 { buffer.append(message) }
        var granted: [Int] = []
        #expect(await buffer.next(most: 1) { granted.append($0) }?.count == 1)
        #expect(await buffer.next(most: 1) { granted.append($0) }?.count == 1)
        #expect(granted.isEmpty)
        #expect(await buffer.next(most: 1) { granted.append($0) }?.count == 1)
        #expect(granted == [2])
        buffer.finish()
        buffer.append(message)
        #expect(await buffer.next(most: 10) { granted.append($0) }?.count == 1)
        #expect(await buffer.next(most: 10) { granted.append($0) } == nil)
        #expect(granted == [2, 2])
    }

    @Test("a consumer that is cancelled gets the end, and the next message waits for another")
    func cancelledConsumer() async {
        let buffer = MessageBuffer(capacity: 4)
        let task = Task { await buffer.next(most: 1) { _ in } }
        task.cancel()
        #expect(await task.value == nil)
        buffer.append(Message(topic: "t", payload: []))
        #expect(await buffer.next(most: 1) { _ in }?.count == 1)
    }
}
