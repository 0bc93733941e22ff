import FleetProtocol

/// Apps that something concerns, each once, in their order. Mostly it is one: a set would hash it, and be sorted.
struct AppList: Sequence {
    private var apps: [AppID] = []

    init() {}

    init(_ apps: some Sequence<AppID>) { insert(contentsOf: apps) }

    func contains(_ app: AppID) -> Bool { apps.contains(app) }

    mutating func insert(_ app: AppID) {
        let place = apps.firstIndex { $0 >= app } ?? apps.count
        if place == apps.count || apps[place] != app { apps.insert(app, at: place) }
    }

    mutating func insert(contentsOf others: some Sequence<AppID>) { for app in others { insert(app) } }

    func makeIterator() -> IndexingIterator<[AppID]> { apps.makeIterator() }
}
