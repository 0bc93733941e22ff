package import FleetProtocol

/// What an app wants to do with data.
package enum DataRequest: Hashable, Sendable {
    case copy
    case openIn(AppID)
    /// The app that would get the URL, where it is known.
    case openURL(String, AppID?)
    case openFrom(AppID)
    case print
    case dragAndDrop(AppID)

    /// For the report: the app or URL that it is aimed at.
    var target: String? {
        switch self {
        case .copy, .print: nil
        case .openIn(let app), .openFrom(let app), .dragAndDrop(let app): app.text
        case .openURL(let url, _): Text.printable(url, limit: 500)
        }
    }

    /// The attempt that it is where the policies do not allow it to `app`.
    func blocked(by properties: AppProperties, in app: AppID?) -> Attempt? {
        switch self {
        case .copy:
            guard case .pasteboard(let policy) = properties[.pasteboard] else { return .copy(.unauthorized) }
            return policy == .unauthorized ? .copy(policy) : nil
        case .openIn(let target):
            guard case .openIn(let policy, let apps) = properties[.openIn] else {
                return .openIn(.unauthorized, target)
            }
            return policy == .authorized || policy == .whitelist && apps.contains(target)
                ? nil : .openIn(policy, target)
        case .openURL(let url, let target):
            guard case .openIn(let policy, let apps) = properties[.openIn] else { return .openURL(url) }
            return policy == .authorized || policy == .whitelist && target.map(apps.contains) == true
                ? nil : .openURL(url)
        case .openFrom(let source):
            guard case .openFrom(let policy, let apps) = properties[.openFrom] else {
                return .openFrom(.unauthorized, source)
            }
            return policy == .authorized || policy == .whitelist && apps.contains(source)
                ? nil : .openFrom(policy, source)
        case .print:
            return properties[.print] == .print(.authorized) ? nil : .print
        case .dragAndDrop(let target):
            if target == app || properties[.dragAndDrop] == .dragAndDrop(.allApps) { return nil }
            return .dragAndDrop(target)
        }
    }
}

/// A request that was blocked, as the delegate is told of it.
package enum Attempt: Hashable, Sendable {
    case openIn(OpenInPolicy, AppID)
    case openURL(String)
    case openFrom(OpenFromPolicy, AppID)
    case copy(PasteboardPolicy)
    case dragAndDrop(AppID)
    case print

    var action: AppEvent.Action {
        switch self {
        case .openIn: .openIn
        case .openURL: .openURL
        case .openFrom: .openFrom
        case .copy: .copy
        case .dragAndDrop: .dragAndDrop
        case .print: .print
        }
    }
}
