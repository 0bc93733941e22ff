import FleetController
import FleetProtocol

/// What a device that is taken out of the fleet was the last to say, and the history keeps.
struct LastSaid: Hashable {
    let incarnation: Int64
    let groups: [String]
    let apps: [App]
    let isCopied: Bool
    /// Apps whose keys may be on an earlier disk. Of a copied device nothing: what may be on its copies is told by that.
    let leftKeys: [String]

    struct App: Hashable {
        let app: String
        let at: String
        let auth: String
        let keys: String
        /// When the newest event was stored by which its keys are gone.
        let wipedAt: String?
    }
}

extension LastSaid {
    /// As the history tells it.
    init(_ told: JSONValue) {
        incarnation = told["incarnation"]?.integerValue ?? 0
        groups = (told["groups"]?.arrayValue ?? []).compactMap(\.stringValue).sorted()
        apps = (told["apps"]?.arrayValue ?? []).map { row in
            func text(_ name: String) -> String? { row[name]?.stringValue }
            return App(
                app: text("app") ?? "", at: text("at") ?? "", auth: text("auth") ?? "", keys: text("keys") ?? "",
                wipedAt: text("wipedAt"))
        }
        isCopied = told["copied"] == .bool(true)
        leftKeys = isCopied ? [] : (told["leftKeys"]?.arrayValue ?? []).compactMap(\.stringValue).sorted()
    }
}

extension Controller {
    /// What a device that somebody asks to take out has said so far; nil where nothing is known of it.
    func lastSaid(_ asked: Asked) -> LastSaid? {
        guard asked.verb == .deviceRemove, let running,
            let request = try? DeviceRequest(json: asked.body, limit: Request.maximumSize),
            let known = try? store.device(request.device), let statuses = try? store.statuses(in: SimulatedFleet.id),
            let left = try? store.leftKeys(of: request.device),
            let wipes = try? running.core.rows(
                of: .events, ListRequest(device: request.device, kind: .wiped), now: clock)
        else { return nil }
        let spoken = known.incarnation <= 1 << 50 ? known.incarnation : 0  // What no home gives out was made up.
        let given = [request.incarnation, known.enrolled, homeRead[request.device], spoken].compactMap(\.self)
        let apps = statuses.filter { $0.device == request.device }.sorted { $0.app < $1.app }.map { status in
            LastSaid.App(
                app: status.app.text, at: status.at.description, auth: status.authState.description,
                keys: status.keys.rawValue,
                wipedAt: wipes.filter { $0["app"]?.stringValue == status.app.text }
                    .compactMap { $0["storedAt"]?.stringValue }.max())
        }
        let groups = desired.groups.filter { $0.value.members.contains(request.device) }.keys.map(\.text)
        return LastSaid(
            incarnation: given.max() ?? 0, groups: groups.sorted(), apps: apps, isCopied: known.isCopied,
            leftKeys: known.isCopied ? [] : left.map(\.text).sorted())
    }

    /// All else that it has said is forgotten: what is kept is true.
    func checkRemoval(_ asked: Asked, of said: LastSaid) throws {
        guard let running else { return }
        let device = try DeviceRequest(json: asked.body, limit: Request.maximumSize).device
        let history = try running.core.rows(of: .history, ListRequest(layer: .device(device)), now: clock)
        let told = history.first { $0["aspect"]?.stringValue == "removal" }.flatMap { $0["old"] }.map(LastSaid.init)
        if told != said {
            let told = told.map { "\($0)" } ?? "nothing"
            world.fail(.summary, "\(device) is removed, and history tells of \(told), where it had said \(said)")
        }
    }
}
