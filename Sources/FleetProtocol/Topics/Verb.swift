/// What an operator or viewer can ask of the controller: the last level of a request's topic.
package enum Verb: String, CaseIterable, Hashable, Sendable {
    case apply
    case delete
    case groupSet = "group-set"
    case groupDelete = "group-delete"
    case groups
    case devices
    case apps
    case policies
    case status
    case progress
    case history
    case events
    case plan
    case enroll
    case deviceRemove = "device-remove"

    /// Whether it changes anything: viewers may only read.
    package var isChange: Bool {
        switch self {
        case .apply, .delete, .groupSet, .groupDelete, .enroll, .deviceRemove: true
        case .groups, .devices, .apps, .policies, .status, .progress, .history, .events, .plan: false
        }
    }

    /// Whether what it would do can be asked before.
    package var canBePlanned: Bool {
        switch self {
        case .apply, .delete, .groupSet, .groupDelete: true
        case .groups, .devices, .apps, .policies, .status, .progress, .history, .events, .plan, .enroll, .deviceRemove:
            false
        }
    }
}
