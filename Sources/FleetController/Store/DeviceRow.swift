import FleetProtocol

/// What is known of a device.
struct DeviceRow: Hashable, Sendable {
    let id: Int64
    let name: DeviceID
    /// The incarnation that the home last gave out; nil when it has not told.
    var enrolled: Int64?
    var incarnation: Int64
    var boot: Int64
    /// `devices.state`, which ``Connectivity`` reads.
    var state: Int64
    /// The last connection that was online.
    var connection: RandomID?
    /// Since when it is online or offline, by the controller's receipt.
    var since: Timestamp?
    /// As the presence of its newest start has said; nil until that has come.
    var agent: String?
    /// What an operator should look at.
    var warning: String?

    /// The row of one of its apps.
    func row(of app: Int64) -> Int64 { id << 16 | app }
}
