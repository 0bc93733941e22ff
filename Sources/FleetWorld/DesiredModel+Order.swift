import FleetProtocol

/// Devices follow the documents of one change as they are numbered.
extension DesiredModel {
    /// On no device anything decides for a moment that did not before, and does not in the end. Returns what is wrong with the
    /// revisions of what was applied, or deleted.
    func problem(inOrderOf results: [ChangeResult], after before: Self) -> String? {
        let changed = results.filter(\.isChanged).sorted { $0.revision < $1.revision }
        let subjects = Set(changed.map { Subject(app: $0.app, aspect: $0.aspect) })
        for subject in subjects {
            let documents = changed.filter { $0.app == subject.app && $0.aspect == subject.aspect }.map(\.layer)
            for chain in chains(speakingTo: documents) {
                let (first, last) = (before.deciding(subject, chain), deciding(subject, chain))
                var between = before
                for layer in documents {
                    let address = Address.desired(layer, subject.app, subject.aspect)
                    between.values[address] = values[address]
                    let now = between.deciding(subject, chain)
                    // Whoever retires it, it is retired.
                    let isRetired = first?.isRetirement == true && now?.isRetirement == true
                    if now != first, now != last, !isRetired {
                        return "\(address.path) comes at a time when \(now.map { "\($0)" } ?? "nothing") decides for"
                            + " \(chain), where it was \(first.map { "\($0)" } ?? "nothing") and is"
                            + " \(last.map { "\($0)" } ?? "nothing"): \(results)"
                    }
                }
            }
        }
        return nil
    }

    private struct Subject: Hashable {
        let app: AppID
        let aspect: Aspect
    }

    private struct Deciding: Hashable {
        let layer: Layer
        let value: String
        let isRetirement: Bool
    }

    /// The layers of each device that these speak to, and of one that belongs to nothing.
    private func chains(speakingTo layers: [Layer]) -> Set<[Layer]> {
        var devices: Set<DeviceID> = []
        for layer in layers {
            switch layer {
            case .all: devices.formUnion(groups.values.flatMap(\.members))
            case .group(let group): devices.formUnion(members(of: group))
            case .device(let device): devices.insert(device)
            }
        }
        let chains = devices.map { device -> [Layer] in
            let own = groups.filter { $0.value.members.contains(device) }
                .sorted { ($1.value.priority, $0.key) < ($0.value.priority, $1.key) }
            return [.device(device)] + own.map { .group($0.key) } + [.all]
        }
        return Set(chains + [[.all]])
    }

    private func deciding(_ subject: Subject, _ chain: [Layer]) -> Deciding? {
        let addresses = chain.map { Address.desired($0, subject.app, subject.aspect) }
        let live = zip(chain, addresses).filter { values[$0.1] != nil }
        let deciding = live.first { subject.aspect == .auth && isRetired($0.1) } ?? live.first
        return deciding.flatMap { layer, address in
            let isRetirement = subject.aspect == .auth && isRetired(address)
            return values[address].map { Deciding(layer: layer, value: $0, isRetirement: isRetirement) }
        }
    }

    /// What lets an app in comes behind what says how. Returns what is wrong with the revisions of what was applied.
    static func problem(inOrderOf results: [ChangeResult], of changes: [ApplyRequest.Change]) -> String? {
        let changed = zip(changes, results).filter(\.1.isChanged)
        for (change, result) in changed where change.authorizes {
            let isLate = changed.contains { other, its in
                other.app == change.app && other.aspect != .auth && its.revision > result.revision
            }
            if isLate { return "\(change.app) is let in before the rest is said: \(results)" }
        }
        return nil
    }

    /// The other way round, of what stood here and was deleted: what lets an app in goes before what says how, unless something
    /// of the same keeps it out, which goes behind that. Returns what is wrong with the revisions.
    func problem(inOrderOfDeleted results: [ChangeResult]) -> String? {
        for app in Set(results.map(\.app)).sorted() {
            let own = results.filter { $0.app == app }
            let (auths, rest) = (own.filter { $0.aspect == .auth }, own.filter { $0.aspect != .auth })
            let isLetIn = auths.allSatisfy { state(of: .desired($0.layer, app, .auth)) == "authorized" }
            let isRight = auths.allSatisfy { auth in
                rest.allSatisfy { ($0.revision > auth.revision) == isLetIn }
            }
            if !isRight {
                let what = isLetIn ? "let in while the rest goes" : "kept out no more before the rest has gone"
                return "\(app) is \(what): \(results)"
            }
        }
        return nil
    }
}

extension ApplyRequest.Change {
    fileprivate var authorizes: Bool {
        if case .auth(.authorized, _) = value.content { true } else { false }
    }
}
