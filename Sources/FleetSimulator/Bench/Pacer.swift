import Dispatch
import Glibc

/// Says when things are due, at a rate, on a thread of its own: to some microseconds, since a latency of a tenth of a
/// millisecond is to be measured from there.
struct Pacer {
    let rate: Int
    let duration: Duration

    /// Calls `due` with each time, from the thread; returns after the last.
    func run(_ due: @escaping @Sendable (UInt64) -> Void) async {
        let total = Int(duration.inSeconds * Double(rate))
        let interval = 1e9 / Double(rate)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            DispatchQueue(label: "fleet-sim-pacer", qos: .userInteractive).async {
                let start = Clock.now() + 1_000_000
                for number in 0..<total {
                    let time = start + UInt64(Double(number) * interval)
                    Self.wait(until: time)
                    due(time)
                }
                continuation.resume()
            }
        }
    }

    private static let spun: UInt64 = 80_000

    /// Sleeps as long as a sleep that ends late is not too late, then looks at the clock.
    private static func wait(until time: UInt64) {
        while true {
            let now = Clock.now()
            guard now < time else { return }
            if time - now > spun {
                var rest = timespec(tv_sec: 0, tv_nsec: Int(min(time - now - spun, 500_000_000)))
                nanosleep(&rest, nil)
            }
        }
    }
}
