import FleetProtocol

extension DesiredChange {
    /// All changes of a request, or none: throws a `Response.Failure` that names the first that cannot be.
    mutating func apply(_ request: ApplyRequest) throws -> [ChangeResult] {
        var places: Set<Address> = []
        let present = try request.changes.enumerated().map { index, change in
            let address = change.address
            guard places.insert(address).inserted else {
                throw Response.Failure(.invalid, "\(address.path) is changed twice", at: "changes[\(index)]")
            }
            let old = try transaction.document(at: address)
            try check(change, against: old, at: index)
            return old
        }
        var results: [(index: Int, result: ChangeResult)] = []
        for index in try order(of: request.changes) {
            let (change, old) = (request.changes[index], present[index])
            if old?.isRetired == true, change.authorization != .retired {
                try warnOfKeys(of: change.app, for: change.layer)
            }
            let isSame = old?.value.map { Text.isSame($0, change.value.jsonText) } ?? false
            let isChanged = !isSame || request.isAgain
            // With `isAgain` it is what is asked for.
            if let old, old.isRetired, change.authorization == .retired, !isSame, !request.isAgain {
                try warnOfRemoved(of: change.app, for: change.layer, behind: old.change)
            }
            let revision =
                try isChanged
                ? issue(.aspect(change.value), at: change.address, location: "changes[\(index)].value").revision
                : old?.revision
            let result = ChangeResult(
                app: change.app, layer: change.layer, aspect: change.aspect, revision: revision?.number ?? 0,
                isChanged: isChanged)
            results.append((index, result))
        }
        // Before what may be said of very many devices.
        for change in request.changes where ![nil, .retired].contains(change.authorization) {
            try warnOfRetirement(of: change.app, besides: change.layer)
        }
        for change in request.changes { try warn(about: change) }
        return results.sorted { $0.index < $1.index }.map(\.result)
    }

    /// Devices follow each document as it comes, and what decides there is at no time anything but what did before, or does in
    /// the end: what retires comes first, since it wins everywhere, and of the rest what wins comes first. What lets an app in
    /// comes behind what says how: by then its passcode and limits are there.
    private func order(of changes: [ApplyRequest.Change]) throws -> [Int] {
        let letIn = Set(changes.filter { $0.authorization == .authorized }.map(\.app))
        let keys = try changes.enumerated().map { index, change in
            let stage =
                switch change.authorization {
                case .retired: 0
                case .unauthorized where !letIn.contains(change.app): 1
                case nil: 2
                case .authorized, .unauthorized: 3
                }
            return OrderKey(stage: stage, rank: try rank(of: change.layer), index: index)
        }
        return keys.sorted().map(\.index)
    }

    /// Which layer wins where several speak to a device: the lowest.
    private func rank(of layer: Layer) throws -> OrderKey.Rank {
        switch layer {
        case .device(let device): OrderKey.Rank(kind: 0, name: device.text)
        case .group(let group):
            OrderKey.Rank(kind: 1, priority: try transaction.priority(of: group) ?? 0, name: group.text)
        case .all: OrderKey.Rank(kind: 2)
        }
    }

    /// Puts tombstones in the place of the selected documents, in the order that is the reverse of ``apply(_:)``: of what speaks
    /// to one device what wins goes last, what retires behind all, and what keeps an app out behind what says how.
    mutating func delete(_ request: SelectionRequest) throws -> [ChangeResult] {
        var found: [(app: AppID, layer: Layer, aspect: Aspect, document: StoredDocument)] = []
        var places: Set<Address> = []
        for (index, selector) in request.documents.enumerated() {
            let live = try transaction.documents(on: selector.layer, app: selector.app).filter { !$0.isTombstone }
            let count = found.count
            for document in live {
                guard case .desired(_, _, let aspect) = document.address, selector.aspect ?? aspect == aspect,
                    places.insert(document.address).inserted
                else { continue }
                found.append((selector.app, selector.layer, aspect, document))
            }
            guard found.count > count else {
                let what = selector.aspect.map { "no \($0.text) document" } ?? "no document"
                throw Response.Failure(
                    .notFound, "there is \(what) of \(selector.app) for \(selector.layer)", at: "documents[\(index)]")
            }
        }
        let keptOut = Set(found.filter(\.document.keepsOut).map(\.app))
        let keys = try found.enumerated().map { index, entry in
            let stage =
                switch entry.aspect {
                case .auth where entry.document.isRetired: 3
                case .auth: keptOut.contains(entry.app) ? 2 : 0
                default: 1
                }
            return OrderKey(stage: stage, rank: try rank(of: entry.layer), index: index, isReversed: true)
        }
        var revisions: [Address: Int64] = [:]
        for document in found.map(\.document) where document.isRetired { try warnOfEnd(of: document) }
        for key in keys.sorted() {
            let document = found[key.index].document
            revisions[document.address] = try issue(.tombstone, at: document.address).revision.number
        }
        for entry in found { try warn(aboutDeleting: entry.document) }
        return found.map { app, layer, aspect, document in
            ChangeResult(
                app: app, layer: layer, aspect: aspect, revision: revisions[document.address] ?? 0, isChanged: true)
        }
    }

    private func check(_ change: ApplyRequest.Change, against old: StoredDocument?, at index: Int) throws {
        guard let basedOn = change.basedOn else { return }
        let present = old?.revision.number ?? 0
        guard basedOn == present || (basedOn == 0 && old?.isTombstone ?? true) else {
            let by = old.map { ", by \($0.by) at \($0.issuedAt)" } ?? ""
            throw Response.Failure(
                .conflict,
                "\(change.aspect.text) of \(change.app) for \(change.layer) stands at revision \(present)\(by), and"
                    + " this change was made from \(basedOn)", at: "changes[\(index)].basedOn")
        }
    }

    private mutating func warn(about change: ApplyRequest.Change) throws {
        switch change.layer {
        case .all: break
        case .group(let group):
            if try transaction.priority(of: group) == nil {
                warn("there is no group \(group) yet: this reaches nobody until it has members")
            }
        case .device(let device):
            if try transaction.device(device) == nil {
                warn("the device \(device) is not known: it was never enrolled or seen")
            }
        }
        switch change.value.content {
        case .secureServices(let value): warn(about: value, of: change.app)
        case .auth, .dlp, .config, .logLevel, .unreadable: break
        }
    }

    /// In seconds: heartbeats come every minute, and one may be late or lost.
    private static let shortestOffline: Int64 = 180

    private mutating func warn(about value: SecureServicesValue, of app: AppID) {
        guard let offline = value.offline else { return }
        if let block = offline.blockAfter, block <= 3_600 {
            warn("\(app) is blocked when the controller is away for \(block) s: an outage or an update may take longer")
        }
        if let shortest = [offline.blockAfter, offline.wipeAfter].compactMap(\.self).min(),
            shortest < Self.shortestOffline
        {
            warn(
                "\(app) may be blocked or wiped while the controller is there: its heartbeats come once a minute, and"
                    + " \(shortest) s are fewer than three")
        }
        if let block = offline.blockAfter, let wipe = offline.wipeAfter, wipe <= block {
            warn("\(app) is wiped after \(wipe) s out of contact, before it would be blocked (\(block) s)")
        }
        if offline.blockAfter == nil, let wipe = offline.wipeAfter, wipe <= 86_400 {
            warn("\(app) is wiped when the controller is away for \(wipe) s")
        }
    }

    mutating func warn(aboutDeleting document: StoredDocument) throws {
        guard case .desired(let layer, let app, .auth) = document.address else { return }
        try warnOfRetirement(of: app, besides: layer)
        if document.isRetired {
            warn(
                "deleting the retirement of \(app) for \(layer) releases an app that was retired only where another"
                    + " auth document that was changed after it decides")
        }
    }

    mutating func warnOfEnd(of retirement: StoredDocument) throws {
        guard case .desired(let layer, let app, .auth) = retirement.address else { return }
        try warnOfKeys(of: app, for: layer)
    }

    /// A retirement is about to end: who has not followed it by now may never have to.
    private mutating func warnOfKeys(of app: AppID, for layer: Layer) throws {
        guard warnings.count < Self.maximumWarnings else { return }
        let selector = DocumentSelector(app: app, layer: layer, aspect: .auth)
        let request = SelectionRequest(documents: [selector], names: false)
        let rows = try Progress(transaction, request, now: now).answer.rows
        warnOfKeys(of: app, for: layer, on: rows.reduce(0) { $0 + ($1.retirement?.outstanding ?? 0) })
        warnOfDoubt(of: app, for: layer, on: rows.reduce(0) { $0 + ($1.retirement?.doubtful ?? 0) })
    }

    /// Removed devices are told of behind the retirement that they had before, and not behind a newer one.
    private mutating func warnOfRemoved(of app: AppID, for layer: Layer, behind change: Revision) throws {
        let left = try transaction.leftKeys(of: app, retiredBy: [layer: change]).filter { !$0.isOfPresentDevice }
        warnOfDoubt(of: app, for: layer, on: left.devices)
    }

    mutating func warnOfDoubt(of app: AppID, for layer: Layer, on devices: Int64) {
        guard devices > 0 else { return }
        warn(
            "the retirement of \(app) for \(layer) leaves keys of \(devices) device\(devices == 1 ? "" : "s") in doubt:"
                + " they may be on other disks, on copies or on removed devices, and nobody is told of those any more")
    }

    mutating func warnOfKeys(of app: AppID, for layer: Layer, on devices: Int64) {
        guard devices > 0 else { return }
        warn(
            "the retirement of \(app) for \(layer) was not confirmed on \(devices) device\(devices == 1 ? "" : "s"):"
                + " keys and data may stay there")
    }

    private mutating func warnOfRetirement(of app: AppID, besides layer: Layer) throws {
        for other in try layersRetiring(app) where other != layer && layer.mayShareDevices(with: other) {
            warn("\(app) is retired by \(other), which wins over every layer")
        }
    }
}

extension Layer {
    /// Whether a device could belong to both.
    fileprivate func mayShareDevices(with other: Layer) -> Bool {
        guard case .device(let left) = self, case .device(let right) = other else { return true }
        return left == right
    }
}

extension ApplyRequest.Change {
    fileprivate var address: Address { .desired(layer, app, aspect) }

    fileprivate var authorization: AuthState? {
        guard case .auth(let state, _) = value.content else { return nil }
        return state
    }
}

extension StoredDocument {
    /// It says of an app that it is not authorized.
    fileprivate var keepsOut: Bool {
        guard case .desired(_, _, .auth) = address, let value else { return false }
        return JSONValue(stored: value)["state"] != .string(AuthState.authorized.description)
    }
}

/// Where a document stands among those of one change.
private struct OrderKey: Comparable {
    /// As layers decide on a device.
    struct Rank: Comparable {
        let kind: Int
        var priority: Int64 = 0
        var name = ""

        static func < (left: Self, right: Self) -> Bool {
            (left.kind, right.priority, left.name) < (right.kind, left.priority, right.name)
        }
    }

    let stage: Int
    let rank: Rank
    /// Of what is alike what was asked for first.
    let index: Int
    var isReversed = false

    static func < (left: Self, right: Self) -> Bool {
        if left.stage != right.stage { return left.stage < right.stage }
        if left.rank != right.rank { return (left.rank < right.rank) != left.isReversed }
        return left.index < right.index
    }
}
