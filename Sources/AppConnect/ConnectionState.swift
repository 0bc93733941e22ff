/// Whether the app is in touch with the device agent: for diagnosis. An app works the same in either state.
public enum ConnectionState: Hashable, Sendable {
    /// The agent has welcomed the app.
    case connected(device: String, agent: String)
    /// There is no connection, and why; the library keeps trying unless it has been stopped.
    case disconnected(AppConnectError)
}
