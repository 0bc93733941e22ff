import FleetCommands
import FleetHome
import FleetProtocol

/// Spreads a load's devices over its groups, by way of the controller.
struct LoadGroups {
    private let plan: LoadPlan
    /// Ids in one request, which may have 1 MiB.
    private static let batch = 5_000

    init(_ plan: LoadPlan) { self.plan = plan }

    func set(in home: FleetHome) async throws {
        guard plan.groups > 0 else { return }
        try await FleetCommands.Controller.reach(home, as: .operator(Name(unchecked: "admin"))) { controller in
            for group in 0..<plan.groups {
                let members = (plan.first..<plan.first + plan.devices).filter { $0 % plan.groups == group }
                for start in stride(from: 0, to: members.count, by: Self.batch) {
                    let batch = members[start..<min(start + Self.batch, members.count)]
                    _ = try await controller.ask(
                        .groupSet,
                        GroupRequest(
                            group: LoadPlan.groupID(group + 1), priority: 0, add: batch.map(LoadPlan.deviceID)))
                }
            }
        }
    }
}
