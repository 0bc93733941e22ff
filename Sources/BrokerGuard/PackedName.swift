/// A user name or a group's id as a value without memory of its own: to look it up costs no allocation, which each delivery
/// of a message would pay for.
struct PackedName: Hashable, Sendable {
    /// Its bytes, and zeros behind them, which stand in no id.
    private var words = SIMD8<UInt64>()

    /// Nil for what is too long to be one.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.count <= MemoryLayout<SIMD8<UInt64>>.size else { return nil }
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
    }

    init?(_ text: String) {
        var text = text
        guard let name = text.withUTF8({ PackedName($0) }) else { return nil }
        self = name
    }
}
