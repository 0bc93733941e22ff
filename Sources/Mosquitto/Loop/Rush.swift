/// Tells when so much comes that it is cheaper to let it gather than to wake up for each. Times in nanoseconds.
struct Rush {
    /// How long to let messages gather, in milliseconds; 0 for never.
    private let pause: Int32
    private var count = 0
    private var windowEnd: UInt64 = 0
    private var isOn = false

    private static let window: UInt64 = 4_000_000
    /// In each window, from here on it is a rush.
    private static let threshold = 32

    init(pause: Int32) { self.pause = pause }

    /// So much has come.
    mutating func add(_ count: Int) { self.count += count }

    /// How long to let messages gather now, in milliseconds.
    mutating func pause(at now: UInt64) -> Int32 {
        guard pause > 0 else { return 0 }
        if now >= windowEnd {
            // After a longer silence what was counted says nothing any more.
            isOn = count >= Self.threshold && now < windowEnd + 4 * Self.window
            count = 0
            windowEnd = now + Self.window
        }
        return isOn ? pause : 0
    }
}
