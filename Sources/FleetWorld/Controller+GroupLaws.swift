import FleetController
import FleetProtocol

/// Devices follow the documents of one change of a group as they are numbered.
extension Controller {
    /// Who leaves a group has left before it has another priority, and who comes, comes to it as it is then: on no device anything
    /// decides for a moment that did not before, and does not in the end.
    ///
    /// - Parameter before: What was wanted before this change was made.
    func checkOrder(ofGroup asked: Asked, _ standing: DesiredModel.Standing, since before: DesiredModel) throws {
        guard asked.verb == .groupSet else { return }
        let group = try GroupRequest(json: asked.body, limit: Request.maximumSize).group
        var issued: [Address: Int64] = [:]
        for wish in try store.wishes() where wish.revision.number > standing.revisions[wish.address] ?? 0 {
            issued[wish.address] = wish.revision.number
        }
        guard let priority = issued[.groupMeta(group)] else { return }
        let (past, now) = (before.members(of: group), desired.members(of: group))
        for (devices, isLeaving) in [(past.subtracting(now), true), (now.subtracting(past), false)] {
            for device in devices.sorted() {
                guard let membership = issued[.membership(device)], (membership < priority) != isLeaving else {
                    continue
                }
                world.fail(
                    .answered,
                    "\(device) \(isLeaving ? "leaves" : "comes to") \(group) at \(membership), which gets its priority at"
                        + " \(priority)")
            }
        }
    }
}
