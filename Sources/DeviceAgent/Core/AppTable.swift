import FleetProtocol

/// Something for each of a device's apps, in the order of their ids. They are few: to look one up takes less than to hash
/// its id would, and what is changed is changed in its place.
struct AppTable<Value> {
    struct Entry {
        let app: AppID
        /// nil: taken out. The place stays: most come back.
        var value: Value?
    }

    private var entries: [Entry] = []

    /// Where an app stands, or would stand.
    private func place(of app: AppID) -> (index: Int, isThere: Bool) {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].app == app { return (middle, true) }
            if entries[middle].app < app { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    subscript(app: AppID) -> Value? {
        _read {
            let (index, isThere) = place(of: app)
            if isThere { yield entries[index].value } else { yield nil }
        }
        set {
            let (index, isThere) = place(of: app)
            if isThere {
                entries[index].value = newValue
            } else if let newValue {
                entries.insert(Entry(app: app, value: newValue), at: index)
            }
        }
        _modify {
            let (index, isThere) = place(of: app)
            if !isThere { entries.insert(Entry(app: app, value: nil), at: index) }
            defer { if !isThere, entries[index].value == nil { entries.remove(at: index) } }
            yield &entries[index].value
        }
    }

    /// Takes what is there out, so that it can be changed without being copied.
    mutating func take(_ app: AppID) -> Value? {
        let (index, isThere) = place(of: app)
        return isThere ? entries[index].value.take() : nil
    }

    func contains(_ app: AppID) -> Bool {
        let (index, isThere) = place(of: app)
        return isThere && entries[index].value != nil
    }

    /// In their order.
    var keys: [AppID] { entries.compactMap { $0.value == nil ? nil : $0.app } }
    var values: [Value] { entries.compactMap { $0.value } }
}

extension AppTable: Sendable where Value: Sendable {}
extension AppTable.Entry: Sendable where Value: Sendable {}
