package import FleetProtocol

/// What the layers say: the documents that are kept, and for each app those that speak to it, in the order in which they
/// decide. That order is worked out when a document comes, not each time that somebody asks.
struct Layers: Sendable {
    /// What speaks to one app, by aspect: the deciding document first.
    struct Wishes: Sendable {
        fileprivate var documents = [[KeptDocument]](repeating: [], count: Aspect.allCases.count)

        subscript(aspect: Aspect) -> [KeptDocument] { documents[aspect.index] }
        var isEmpty: Bool { documents.allSatisfy { $0.isEmpty } }

        /// Puts a document in the place of its predecessor, if there is one.
        fileprivate mutating func replace(_ document: KeptDocument, _ aspect: Aspect) -> Bool {
            guard let place = documents[aspect.index].firstIndex(where: { $0.address == document.address }) else {
                return false
            }
            documents[aspect.index][place] = document
            return true
        }

        static let none = Wishes()
    }

    private let device: DeviceID
    private var documents: [Address: KeptDocument] = [:]
    private var wishes = AppTable<Wishes>()
    /// Whose documents count: the higher priority first, then the smaller id.
    private var groups: [GroupID] = []

    init(_ device: DeviceID) { self.device = device }

    subscript(address: Address) -> KeptDocument? { documents[address] }
    var wires: [Address: [UInt8]] { documents.mapValues(\.wire) }

    func wishes(for app: AppID) -> Wishes { wishes[app] ?? Wishes.none }

    /// The groups that the membership document names.
    var membership: [GroupID] {
        guard case .membership(let groups)? = documents[.membership(device)]?.content else { return [] }
        return groups
    }

    /// A document is kept, or with nil no longer.
    mutating func set(_ document: KeptDocument?, at address: Address) {
        documents[address] = document
        switch address {
        case .desired(_, let app, let aspect):
            if let document, wishes[app]?.replace(document, aspect) ?? false { return }
            order(aspect, of: app)
        case .groupMeta: count(groups)
        default: break
        }
    }

    /// From now on the documents of these groups count.
    mutating func count(_ groups: [GroupID]) {
        self.groups = groups.sorted { left, right in
            let (leftPriority, rightPriority) = (priority(left), priority(right))
            return leftPriority != rightPriority ? leftPriority > rightPriority : left < right
        }
        var concerned: Set<AppID> = []
        for case .desired(_, let app, _) in documents.keys { concerned.insert(app) }
        for app in wishes.keys where !concerned.contains(app) { wishes[app] = nil }
        for app in concerned { for aspect in Aspect.allCases { order(aspect, of: app) } }
    }

    /// Which documents are kept of the device, of the groups that count, and of these apps.
    func revisions(of apps: Set<AppID>) -> [Address: Revision] {
        documents.filter { address, _ in
            if case .desired(_, let app, _) = address, !apps.contains(app) { return false }
            return address.group.map(groups.contains) ?? true
        }.mapValues(\.revision)
    }

    /// Where the documents of other groups stand, in one order for all.
    func addresses(ofOtherGroupsThan groups: Set<GroupID>) -> [Address] {
        documents.keys.filter { $0.group.map { !groups.contains($0) } ?? false }.sorted { $0.path < $1.path }
    }

    /// Where documents of earlier epochs stand, in one order for all.
    func addresses(before epoch: Int64) -> [Address] {
        documents.filter { $0.value.revision.epoch < epoch }.keys.sorted { $0.path < $1.path }
    }

    /// Whether any that speaks to an app, or says which groups count, is of an earlier epoch.
    func haveDocument(for app: AppID, before epoch: Int64) -> Bool {
        documents.contains { address, document in
            if case .desired(_, let other, _) = address, other != app { return false }
            return document.revision.epoch < epoch
        }
    }

    private mutating func order(_ aspect: Aspect, of app: AppID) {
        var found: [KeptDocument] = []
        if let document = documents[.desired(.device(device), app, aspect)] { found.append(document) }
        for group in groups {
            if let document = documents[.desired(.group(group), app, aspect)] { found.append(document) }
        }
        if let document = documents[.desired(.all, app, aspect)] { found.append(document) }
        if !wishes.contains(app) { wishes[app] = Wishes.none }
        wishes[app]?.documents[aspect.index] = found
    }

    private func priority(_ group: GroupID) -> Int64 {
        guard case .groupMeta(let meta)? = documents[.groupMeta(group)]?.content else { return 0 }
        return meta.priority
    }
}

extension Address {
    /// The group that a desired topic speaks to.
    package var group: GroupID? {
        switch self {
        case .desired(.group(let group), _, _), .groupMeta(let group): group
        default: nil
        }
    }
}
