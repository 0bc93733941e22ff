import FleetProtocol

/// What users of one kind may do in one direction, compiled from the table in ``Access``: patterns of bytes, one behind the
/// other, compared with a topic from left to right. It is asked for each delivery to each client.
struct RightsTable: Sendable {
    /// Of the fleet, behind its prefix, or of the broker's own topics.
    private let patterns: [UInt8]

    private static let ownName = Access.ownName.asciiValue ?? 0
    private static let ownGroup = Access.ownGroup.asciiValue ?? 0
    private static let end = UInt8(0)

    init(_ role: Access.Role, _ direction: Access.Direction, ofBroker isBrokerTopic: Bool) {
        patterns = Access.table(of: role)
            .filter { $0.direction == direction && $0.isBrokerTopic == isBrokerTopic }
            .flatMap { Array($0.pattern.utf8) + [Self.end] }
    }

    /// Whether one of the patterns covers a topic, or all that a filter stands for.
    ///
    /// - Parameter isOwnGroup: Whether the user's device is a member of the group of that name.
    func covers(
        _ topic: UnsafeBufferPointer<UInt8>, isFilter: Bool, own: UnsafeBufferPointer<UInt8>,
        isOwnGroup: (UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Bool {
        patterns.withUnsafeBufferPointer { patterns in
            var start = 0
            var index = 0
            while index < patterns.count {
                if patterns[index] == Self.end {
                    let pattern = UnsafeBufferPointer(rebasing: patterns[start..<index])
                    if Self.covers(pattern, topic, isFilter: isFilter, own: own, isOwnGroup: isOwnGroup) { return true }
                    start = index + 1
                }
                index += 1
            }
            return false
        }
    }

    private static func covers(
        _ pattern: UnsafeBufferPointer<UInt8>, _ topic: UnsafeBufferPointer<UInt8>, isFilter: Bool,
        own: UnsafeBufferPointer<UInt8>, isOwnGroup: (UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Bool {
        var position = 0
        for byte in pattern {
            switch byte {
            case ownName:
                guard topic.count - position >= own.count else { return false }
                for index in 0..<own.count where topic[position + index] != own[index] { return false }
                position += own.count
            case ownGroup:
                let group = level(of: topic, at: position)
                guard isOwnGroup(group) else { return false }
                position += group.count
            case UInt8(ascii: "+"):
                let any = level(of: topic, at: position)
                // One level does not cover all the rest.
                guard !any.isEmpty, !isFilter || any[0] != UInt8(ascii: "#") else { return false }
                position += any.count
            case UInt8(ascii: "#"): return position < topic.count
            default:
                guard position < topic.count, topic[position] == byte else { return false }
                position += 1
            }
        }
        return position == topic.count
    }

    private static func level(of topic: UnsafeBufferPointer<UInt8>, at start: Int) -> UnsafeBufferPointer<UInt8> {
        var end = start
        while end < topic.count, topic[end] != UInt8(ascii: "/") { end += 1 }
        return UnsafeBufferPointer(rebasing: topic[start..<end])
    }
}
