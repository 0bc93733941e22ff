import DeviceAgent
import FleetProtocol
import Testing

@Suite("What waits to be published")
struct OutboxTests {
    private let presence = Address.presence(.device(DeviceID(unchecked: "till-1")))
    private let event = Address.reply(DeviceID(unchecked: "till-1"), mail, .event)

    private func waiting(_ outbox: inout Outbox) -> [[UInt8]] {
        var all: [[UInt8]] = []
        while let next = outbox.next() { all.append(next.content.payload) }
        return all
    }

    @Test("of a retained topic the newest is kept, in its place; what is not retained keeps its order")
    func newest() {
        var outbox = Outbox()
        let status = Address.reply(DeviceID(unchecked: "till-1"), mail, .status)
        outbox.add(status, [1], retain: true)
        outbox.add(event, [2], retain: false)
        outbox.add(event, [3], retain: false)
        outbox.add(status, [4], retain: true)
        #expect(waiting(&outbox) == [[4], [2], [3]])
        #expect(outbox.isEmpty)
    }

    @Test("a newer presence goes behind what it speaks of")
    func presenceLast() {
        var outbox = Outbox()
        outbox.add(presence, [1], retain: true)
        outbox.add(Address.reply(DeviceID(unchecked: "till-1"), mail, .status), [2], retain: true)
        outbox.add(presence, [3], retain: true)
        #expect(!outbox.isEmpty)
        #expect(waiting(&outbox) == [[2], [3]])
        #expect(outbox.isEmpty)
        outbox.add(presence, [4], retain: true)
        #expect(waiting(&outbox) == [[4]])
    }

    @Test("reports go behind all else, and wait where there were enough of them")
    func reportsLast() {
        var outbox = Outbox()
        let level = Address.reply(DeviceID(unchecked: "till-1"), mail, .logLevel)
        let marker = Address.barrier(.device(DeviceID(unchecked: "till-1")))
        outbox.add(event, [1], retain: false)
        outbox.add(presence, [2], retain: true)
        outbox.add(level, [3], retain: false)
        outbox.add(marker, [4], retain: false)
        #expect(outbox.next(withReports: false)?.content.payload == [2])
        #expect(outbox.next(withReports: false)?.content.payload == [4])
        #expect(outbox.next(withReports: false) == nil)
        #expect(!outbox.isEmpty)
        outbox.add(marker, [5], retain: false)
        #expect(waiting(&outbox) == [[5], [1], [3]])
        #expect(outbox.isEmpty)
    }

    @Test("reports that are said again before they have gone do not add up")
    func bounded() {
        var outbox = Outbox()
        let marker = Address.barrier(.device(DeviceID(unchecked: "till-1")))
        for _ in 0..<5 {
            for number in 0..<1_000 { outbox.add(event, [UInt8(number % 256)], retain: false) }
        }
        outbox.add(marker, [1], retain: false)
        outbox.add(presence, [2], retain: true)
        #expect(waiting(&outbox).count == 1_002)
        outbox.add(event, [3], retain: false)
        #expect(waiting(&outbox) == [[3]])
    }

    @Test("what never becomes empty keeps its order")
    func neverEmpty() {
        var outbox = Outbox()
        outbox.add(event, [0], retain: false)
        for number in 1..<250 {
            outbox.add(event, [UInt8(number)], retain: false)
            #expect(outbox.next()?.content.payload == [UInt8(number - 1)])
        }
        #expect(waiting(&outbox) == [[249]])
    }
}
