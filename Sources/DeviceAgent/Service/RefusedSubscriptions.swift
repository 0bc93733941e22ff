/// Of the subscriptions of one connection that a broker refuses, which are still wanted when they are asked for again: what
/// has been left meanwhile is not.
package struct RefusedSubscriptions: Sendable {
    private var left: Set<String> = []
    private var next: Int64 = 1

    package init() {}

    package mutating func subscribing(to filters: [String]) { left.subtract(filters) }
    package mutating func unsubscribing(from filters: [String]) { left.formUnion(filters) }

    /// Seconds until they are asked for again, at first few: a broker that has just started may not know yet what the device
    /// may read, and does as soon as the controller is back.
    package mutating func pause() -> Int64 {
        defer { next = min(2 * next, 10) }
        return next
    }

    package func isWanted(_ refused: String) -> Bool { !left.contains(refused) }
}
