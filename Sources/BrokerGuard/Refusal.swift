/// Why the broker is not to do what a client asks for, in words for the broker's log.
package struct Refusal: Hashable, Sendable {
    package let reason: String

    init(_ reason: String) { self.reason = reason }
}
