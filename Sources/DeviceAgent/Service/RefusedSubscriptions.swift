/// Of the subscriptions of one connection that a broker refuses, which are still wanted when they are asked for again: what
/// has been left meanwhile is not.
package struct RefusedSubscriptions: Sendable {
    private var left: Set<String> = []

    package init() {}

    package mutating func subscribing(to filters: [String]) { left.subtract(filters) }
    package mutating func unsubscribing(from filters: [String]) { left.formUnion(filters) }
    package func isWanted(_ refused: String) -> Bool { !left.contains(refused) }
}
