/// What became of the wish that the broker reads its files again.
package enum BrokerReload: Hashable, Sendable {
    case signalled(pids: [Int32])
    /// No broker runs on this home: it reads the files when it starts.
    case notRunning
}
