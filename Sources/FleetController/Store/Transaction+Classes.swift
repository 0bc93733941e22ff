import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// By the device's groups: left to itself, SQLite takes all documents of the app and asks of each whose it is.
    static let selectOverrides = """
        SELECT aspect, layer, target, 0 AS priority FROM documents
        WHERE layer = 2 AND target = ? AND app = ? AND value IS NOT NULL
        UNION ALL
        SELECT documents.aspect, documents.layer, documents.target, groups.priority
        FROM members CROSS JOIN groups ON groups.name = members."group"
            CROSS JOIN documents ON documents.layer = 1 AND documents.target = groups.name
        WHERE members.device = ? AND documents.app = ? AND documents.value IS NOT NULL
        ORDER BY 2 DESC, 4 DESC, 3
        """

    /// The layers besides `all` that speak to an app on a device now.
    func overrides(of device: DeviceID, app: AppID) throws -> OverrideClass {
        var result = OverrideClass()
        let found = try rows(Self.selectOverrides, [device.text, app.text, device.text, app.text])
        for row in found {
            guard let aspect = Aspect(rawValue: row[0]), let layer = Layer(number: row[1], target: row[2]) else {
                continue
            }
            result.append(layer, for: aspect)
        }
        return result
    }

    func classID(_ overrides: OverrideClass, app: Int64) throws -> Int64 {
        let key = StoreCache.ClassKey(app: app, text: overrides.key)
        if let id = cache.classes[key] { return id }
        try run("INSERT OR IGNORE INTO classes (app, key) VALUES (?, ?)", [app, key.text])
        let id = try number("SELECT id FROM classes WHERE app = ? AND key = ?", [app, key.text]) ?? 0
        if cache.classes.count >= 10_000 { cache.classes.removeAll() }
        cache.classes[key] = id
        return id
    }

    /// Notes when a device-app came, or into another class: it has its time to answer from then.
    func noteClassed(_ id: Int64, at time: Timestamp) throws {
        try run("INSERT OR REPLACE INTO classed (id, at) VALUES (?, ?)", [id, time.milliseconds])
    }

    /// Puts a device's apps, or one of them, into the classes that its layers now make. Whoever is in another class than before
    /// has its time to answer from now on, with `evenIfSame` others have, too.
    func reclassify(
        _ name: DeviceID, app only: AppID? = nil, at time: Timestamp, evenIfSame: Bool = false
    ) throws {
        guard let device = try device(name) else { return }
        for app in try only.map({ [$0] }) ?? apps(of: device) {
            guard let appID = try appID(app, adding: false) else { continue }
            let id = device.row(of: appID)
            guard let present = try number("SELECT class FROM device_apps WHERE id = ?", [id]) else { continue }
            let wanted = try classID(overrides(of: name, app: app), app: appID)
            guard wanted != present || evenIfSame else { continue }
            if wanted != present { try run("UPDATE device_apps SET class = ? WHERE id = ?", [wanted, id]) }
            try noteClassed(id, at: time)
        }
    }

    /// As above for whoever a document on `layer` speaks to.
    func reclassify(_ layer: Layer, app: AppID?, at time: Timestamp, evenIfSame: Bool) throws {
        switch layer {
        case .all: break
        case .group(let group):
            for device in try members(of: group) {
                try reclassify(device, app: app, at: time, evenIfSame: evenIfSame)
            }
        case .device(let device): try reclassify(device, app: app, at: time, evenIfSame: evenIfSame)
        }
    }
}
