package import FleetProtocol

/// The records of a device's apps.
package struct AppRecords: Hashable, Sendable {
    private var table = AppTable<AppRecord>()

    package init() {}

    package subscript(app: AppID) -> AppRecord? {
        _read { yield table[app] }
        set { table[app] = newValue }
        _modify { yield &table[app] }
    }

    /// Takes a record out, so that it can be changed without being copied.
    mutating func take(_ app: AppID) -> AppRecord? { table.take(app) }

    package func contains(_ app: AppID) -> Bool { table.contains(app) }

    package var isEmpty: Bool { count == 0 }
    package var count: Int { table.keys.count }
    /// In the order of their ids.
    package var keys: [AppID] { table.keys }
    package var values: [AppRecord] { table.values }

    package static func == (left: AppRecords, right: AppRecords) -> Bool { left.values == right.values }
    package func hash(into hasher: inout Hasher) { hasher.combine(keys) }
}
