/// Where a client stands with its broker.
public enum ConnectionState: Hashable, Sendable {
    /// An attempt is under way, or about to begin.
    case connecting
    /// The broker has accepted; connections of a client are numbered from 1.
    case connected(number: Int)
    /// No connection; the next attempt comes by itself. `cause` says why, a refusal of the credentials included.
    case waiting(retryIn: Duration, cause: MosquittoError)
    /// Closed for good; `cause` is nil when the program asked for it.
    case closed(cause: MosquittoError?)
}
