/// A device's or group's id as a value without memory of its own: to look it up costs no allocation, which each delivery
/// of a message would pay for.
struct PackedName: Hashable, Sendable {
    /// Its bytes, and zeros behind them, which stand in no id.
    private var words = SIMD8<UInt64>()

    /// The longest id.
    static let maximumLength = 48

    /// Nil for what is too long to be an id.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.count <= Self.maximumLength else { return nil }
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
    }

    init?(_ text: String) {
        var text = text
        guard let name = text.withUTF8({ PackedName($0) }) else { return nil }
        self = name
    }
}
