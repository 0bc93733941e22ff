/// The optional callbacks of an app, by the names that stand in `implements`.
package enum Callback: String, CaseIterable, Hashable, Sendable, Comparable {
    case managedPolicy, config, openIn, openFrom, pasteboard, print, secureFileIO, secureServices, logLevel
    case attempts, activity

    package static func < (left: Callback, right: Callback) -> Bool { left.rawValue < right.rawValue }

    /// The callback behind a policy; nil for auth, which every app has, and for drag and drop, which none has.
    package init?(of policy: Policy) {
        switch policy {
        case .auth, .dragAndDrop: return nil
        case .config: self = .config
        case .openIn: self = .openIn
        case .openFrom: self = .openFrom
        case .pasteboard: self = .pasteboard
        case .print: self = .print
        case .secureFileIO: self = .secureFileIO
        case .secureServices: self = .secureServices
        case .logLevel: self = .logLevel
        }
    }
}
