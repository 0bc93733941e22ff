/// How devices come and go.
package struct Flapping: Sendable {
    /// How long a device stays connected before its connection is cut, as a lost network does it; nil for as long as it
    /// can.
    package var connected: Distribution?
    /// The part of the time that it is offline. Without cuts: the part of devices that never connect.
    package var offline = Distribution.constant(0)

    package init() {}

    /// How long a device is away that was connected for `time`, so that its part of the time is offline.
    static func absence(after time: Duration, offline part: Double) -> Duration {
        let part = min(max(part, 0), 0.99)
        return .nanoseconds(Int64(time.inSeconds * part / (1 - part) * 1e9))
    }
}
