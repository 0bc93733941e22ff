import DeviceAgent
import Testing

@Suite("When the core is woken")
struct WakeTimeTests {
    @Test("a timer is set once, and anew for an earlier time")
    func once() {
        var wake = WakeTime()
        #expect(wake.set(for: 100, at: 0) == 100)
        #expect(wake.set(for: 100, at: 10) == nil)
        #expect(wake.set(for: 200, at: 10) == nil)
        #expect(wake.set(for: 50, at: 10) == 40)
        #expect(wake.set(for: 100, at: 50) == 50)
    }

    @Test("one that rings before its time, by the clock of the core, is set again")
    func early() {
        var wake = WakeTime()
        #expect(wake.set(for: 100, at: 0) == 100)
        let isAwaited = wake.rang(for: 100)
        #expect(isAwaited)
        #expect(wake.set(for: 100, at: 99) == 1)
        let isOfIt = wake.rang(for: 50)
        #expect(!isOfIt)
        #expect(wake.set(for: 100, at: 99) == nil)
    }
}
