/// Names one document of a fleet: the counter of all changes, and the epoch that a restore of the controller raises.
/// The epoch is compared first.
package struct Revision: Hashable, Sendable, Comparable, CustomStringConvertible {
    package var epoch: Int64
    package var number: Int64

    package static let zero = Revision(epoch: 0, number: 0)

    package init(epoch: Int64, number: Int64) {
        self.epoch = epoch
        self.number = number
    }

    package static func < (left: Revision, right: Revision) -> Bool {
        (left.epoch, left.number) < (right.epoch, right.number)
    }

    /// `42`, or `2:42` once the controller has been restored.
    package var description: String { epoch == 1 ? "\(number)" : "\(epoch):\(number)" }
}
