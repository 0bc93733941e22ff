package import FleetProtocol
package import Mosquitto

/// What a simulated fleet is made of, and how its apps behave.
package struct LoadPlan: Sendable {
    package var devices = 100
    /// The number of the first device: several processes can share a fleet.
    package var first = 1
    package var apps = 1
    /// Groups that the devices are spread over.
    package var groups = 0
    /// Connections begun per second.
    package var connectRate = 1_000
    /// Instead of a rate: how many devices may be under way at once, from the first packet to the last app's ready.
    package var window: Int?
    /// How long a device waits before it connects again.
    package var backoff = Backoff()
    package var answers = AppAnswers()
    package var flapping = Flapping()
    /// Whether every device verifies and reads every document, as a real one does; else each distinct one is verified
    /// and read once in this process.
    package var verifiesEach = false

    package init() {}

    static let agentVersion = "fleet-sim/0.1.0"

    /// `sim-000001` and so on: stable, so that another run goes on as the same fleet.
    package var deviceIDs: [DeviceID] { (first..<first + devices).map(Self.deviceID) }
    package var appIDs: [AppID] { (1...max(apps, 1)).map(Self.appID) }

    package static func appID(_ number: Int) -> AppID { AppID(unchecked: "sim.app\(number)") }

    static func deviceID(_ number: Int) -> DeviceID {
        let digits = "\(number)"
        return DeviceID(unchecked: "sim-" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits)
    }

    static func groupID(_ number: Int) -> GroupID { GroupID(unchecked: "sim-g\(number)") }

    /// The group of the device with this number.
    func group(of number: Int) -> GroupID? { groups > 0 ? Self.groupID(number % groups + 1) : nil }
}
