import DeviceAgent
import FleetHome
import FleetProtocol
import Foundation

/// The simulated devices of a home: enrolled once, under `simulated/` in the home.
struct LoadRoster {
    private let home: FleetHome
    private var folder: String { home.path + "/simulated" }

    init(_ home: FleetHome) { self.home = home }

    /// The agents' configurations of `devices`; those that are not enrolled yet are, all in one go.
    ///
    /// They are enrolled without the floors that a real device would be given: they are as old as their fleet.
    func configurations(of devices: [DeviceID]) throws -> [AgentConfiguration] {
        let missing = try devices.filter { device in
            guard FileManager.default.fileExists(atPath: path(of: device)) else { return true }
            return try home.incarnation(of: device) == nil
        }
        if !missing.isEmpty {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try home.enroll(
                missing.map { FleetHome.Enrolment(device: $0, folder: "\(folder)/\($0)") },
                floors: Floors(trust: try home.trust()))
        }
        var result: [AgentConfiguration] = []
        result.reserveCapacity(devices.count)
        for device in devices {
            var configuration = try AgentConfiguration.read(path(of: device))
            if let first = result.first?.enrollment, first.trust == configuration.enrollment.trust {
                // One copy for all.
                configuration.enrollment.trust = first.trust
                configuration.enrollment.rootKey = first.rootKey
            }
            result.append(configuration)
        }
        return result
    }

    private func path(of device: DeviceID) -> String { "\(folder)/\(device)/agent.json" }
}
