package import FleetProtocol

/// What an app wants to do with data.
package enum DataRequest: Hashable, Sendable {
    /// To where anybody can read it.
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

    /// The attempt that it is where the policies do not allow it to `app`: to one that is not authorized, nothing is.
    func blocked(by properties: AppProperties, in app: AppID?) -> Attempt? {
        if case .dragAndDrop(let target) = self, target == app { return nil }
        guard case .auth(.authorized, _) = properties[.auth] else { return unauthorized }
        switch self {
        case .copy:
            guard case .pasteboard(let policy) = properties[.pasteboard] else { return unauthorized }
            return policy == .authorized ? nil : .copy(policy)
        case .openIn(let target):
            guard case .openIn(let policy, let apps) = properties[.openIn] else { return unauthorized }
            return policy == .authorized || policy == .whitelist && apps.contains(target)
                ? nil : .openIn(policy, target)
        case .openURL(let url, let target):
            guard case .openIn(let policy, let apps) = properties[.openIn] else { return unauthorized }
            return policy == .authorized || policy == .whitelist && target.map(apps.contains) == true
                ? nil : .openURL(url)
        case .openFrom(let source):
            guard case .openFrom(let policy, let apps) = properties[.openFrom] else { return unauthorized }
            return policy == .authorized || policy == .whitelist && apps.contains(source)
                ? nil : .openFrom(policy, source)
        case .print:
            return properties[.print] == .print(.authorized) ? nil : .print
        case .dragAndDrop(let target):
            guard case .dragAndDrop(let policy, let apps) = properties[.dragAndDrop] else { return unauthorized }
            return policy == .allApps || policy == .appConnectApps && apps.contains(target)
                ? nil : .dragAndDrop(target)
        }
    }

    private var unauthorized: Attempt {
        switch self {
        case .copy: .copy(.unauthorized)
        case .openIn(let target): .openIn(.unauthorized, target)
        case .openURL(let url, _): .openURL(url)
        case .openFrom(let source): .openFrom(.unauthorized, source)
        case .print: .print
        case .dragAndDrop(let target): .dragAndDrop(target)
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
