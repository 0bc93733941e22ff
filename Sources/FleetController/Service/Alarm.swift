import FleetProtocol
import Mosquitto
import Synchronization

/// Rings at the time that was last set, and at least once a minute however the clock is set meanwhile.
final class Alarm: Sendable {
    let rings: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation
    private let loop: EventLoop
    private let timer = Mutex<LoopTimer?>(nil)

    init(_ loop: EventLoop) {
        self.loop = loop
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func set(for time: Timestamp, now: Timestamp) {
        let delay = min(max(time.milliseconds - now.milliseconds, 0), 60_000)
        timer.withLock { timer in
            timer?.cancel()
            timer = loop.schedule(after: .milliseconds(delay)) { [bell] in bell.yield() }
        }
    }
}
