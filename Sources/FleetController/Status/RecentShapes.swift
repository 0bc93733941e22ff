import FleetProtocol

/// The shapes that were met last, found without the text by which the others are: most statuses of a moment have one of a
/// few.
struct RecentShapes {
    /// The last one met first.
    private var shapes: [Known] = []
    private static let limit = 8

    private struct Known {
        let app: Int64
        let policies: [PolicyReport]
        let keys: Shape.Keys
        let id: Int64
    }

    mutating func id(of status: Status, app: Int64) -> Int64? {
        let keys = Shape.Keys(status)
        guard
            let index = shapes.firstIndex(where: {
                $0.app == app && $0.keys == keys
                    && zip($0.policies, status.policies).allSatisfy { $0.hasShape(of: $1) }
            })
        else { return nil }
        if index > 0 { shapes.swapAt(0, index) }
        return shapes[0].id
    }

    mutating func add(_ status: Status, app: Int64, id: Int64) {
        if shapes.count == Self.limit { shapes.removeLast() }
        shapes.insert(Known(app: app, policies: status.policies, keys: Shape.Keys(status), id: id), at: 0)
    }
}

extension PolicyReport {
    /// Whether both are counted alike: see ``Shape/Entry``.
    fileprivate func hasShape(of other: PolicyReport) -> Bool {
        received == other.received && applied == other.applied && attempt.revision == other.attempt.revision
            && attempt.outcome == other.attempt.outcome && source == other.source
    }
}
