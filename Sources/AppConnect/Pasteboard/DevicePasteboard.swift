/// The pasteboard that all programs of the device have: that of its desktop, or of the app's toolkit. What an app may copy
/// freely goes there.
///
/// Called on whatever thread or task calls ``AppConnect/copy(_:)`` and ``AppConnect/paste()``; one call at a time is not promised.
public protocol DevicePasteboard: Sendable {
    /// Puts it there; nil: empties it, since what was copied last stands elsewhere.
    func write(_ content: PasteboardContent?)
    /// What is there now; nil when nothing is.
    func read() -> PasteboardContent?
}
