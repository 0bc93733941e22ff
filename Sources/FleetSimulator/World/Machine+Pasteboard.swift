import DeviceAgent
import FleetProtocol

/// What somebody beside the agent knows of its pasteboard.
struct PasteboardWatch {
    /// What was copied last, and by whom; nil: nothing is there.
    var content: (item: PasteboardItem, source: AppID)?
    /// Its app has been retired, and perhaps again authorized, while it was copied: it may be there, or not.
    var isDoubtful = false
    /// What was ever copied there.
    var last: PasteboardItem?
    /// In this moment, before it or behind it: who may use keys, and who may copy to where anybody can read it.
    var open: Set<AppID> = []
    var free: Set<AppID> = []
    var confined: Set<AppID> = []
}

/// The pasteboard: what people do with it, and the laws of what comes of it.
extension Machine {
    /// For so long people copy and paste at this device, by a chance of their own.
    func beginCopying(for time: Int64) {
        let seed = world.schedule.seed ^ 0xC0B1 &+ UInt64(bitPattern: world.now)
        copyOrPaste(until: world.now + time, SplitMix64(seed: seed), left: 200)
    }

    private func copyOrPaste(until end: Int64, _ chance: SplitMix64, left: Int) {
        var chance = chance
        guard !world.isCalm, world.now < end, left > 0, !apps.isEmpty else { return }
        let app = apps[chance.below(apps.count)]
        switch chance.below(10) {
        case 0..<4: app.copy()
        case 4: app.copyUnasked(isSecured: chance.chance(70))
        default: app.paste()
        }
        let wait = 1 + Int64(chance.below(chance.chance(50) ? 100 : 4_000))
        world.after(wait) { [unowned self] in copyOrPaste(until: end, chance, left: left - 1) }
    }

    /// Who might do what in this moment. The records of before are still those that are watched.
    func notePasteboard(_ events: [DeviceEvent], _ core: DeviceCore) {
        guard events.contains(where: isOfPasteboard) else { return }
        (watch.pasteboard.open, watch.pasteboard.free, watch.pasteboard.confined) = ([], [], [])
        for app in core.state.apps.values {
            for record in [watch.records[app.id], app].compactMap(\.self) {
                if record.availability == .available { watch.pasteboard.open.insert(app.id) }
                guard record.authState == .authorized else { continue }
                switch record[.pasteboard].value {
                case .pasteboard(.authorized): watch.pasteboard.free.insert(app.id)
                case .pasteboard(.secureCopy): watch.pasteboard.confined.insert(app.id)
                default: break
                }
            }
        }
    }

    private func isOfPasteboard(_ event: DeviceEvent) -> Bool {
        switch event {
        case .frame(_, .copy), .frame(_, .paste): true
        default: false
        }
    }

    /// What was copied by who may, and nothing else, is pasted, by who may, and not when its app has been retired since.
    func checkPasteboard(_ events: [DeviceEvent], _ effects: [DeviceEffect]) {
        let source = watch.pasteboard.content?.source
        let retired = Set(effects.compactMap { if case .destroyKeys(let app) = $0 { app } else { nil } })
        if let source, retired.contains(source) { watch.pasteboard.isDoubtful = true }
        for case .frame(let link, let frame) in events {
            guard let app = watch.links[link.number] else { continue }
            switch frame {
            case .copy(let number, let item):
                guard isCopied(number, link, effects) == true else { continue }
                checkMayCopy(app, item)
                watch.pasteboard.content = item.map { ($0, app) }
                watch.pasteboard.isDoubtful = retired.contains(app)
                watch.pasteboard.last = item ?? watch.pasteboard.last
            case .paste(let number):
                for case .send(link, .pasted(number, let item)) in effects { checkPasted(item, in: app) }
            default: break
            }
        }
        guard let source = watch.pasteboard.content?.source, retired.contains(source), let core else { return }
        if core.state.apps[source]?.authState == .retired { watch.pasteboard.content = nil }
    }

    private func isCopied(_ number: Int64, _ link: LinkID, _ effects: [DeviceEffect]) -> Bool? {
        for case .send(link, .copied(number, let isDone)) in effects { return isDone }
        return nil
    }

    private func checkMayCopy(_ app: AppID, _ item: PasteboardItem?) {
        let pasteboard = watch.pasteboard
        let isAllowed =
            item?.isSecured == true
            ? pasteboard.open.contains(app) && (pasteboard.confined.contains(app) || pasteboard.free.contains(app))
            : pasteboard.free.contains(app)
        if !isAllowed { world.fail(.confined, "\(name)/\(app) has copied, and may not") }
    }

    private func checkPasted(_ item: PasteboardItem?, in app: AppID) {
        let pasteboard = watch.pasteboard
        if let item {
            if item != pasteboard.content?.item {
                world.fail(.confined, "\(name)/\(app) is given what is not there to be pasted")
            }
            if item.isSecured, !pasteboard.open.contains(app) {
                world.fail(.confined, "\(name)/\(app) is given what authorized apps alone may read")
            }
        } else if let content = pasteboard.content, !pasteboard.isDoubtful, !content.item.isSecured {
            world.fail(.confined, "\(name)/\(app) is not given what everybody may read")
        }
    }
}
