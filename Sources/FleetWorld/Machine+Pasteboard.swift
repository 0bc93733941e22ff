import DeviceAgent
import FleetProtocol

/// What somebody beside the agent knows of its pasteboard.
struct PasteboardWatch {
    /// What was copied last, and by whom; nil: nothing is there.
    var content: (item: PasteboardItem, source: AppID)?
    /// Whether that is there nobody can say.
    var isDoubtful = false
    /// What was taken last, whatever has become of it.
    var newest: PasteboardItem?
    /// What is to be answered in this moment.
    var expected: [(link: LinkID, answer: AgentFrame, to: AppID)] = []
    /// What apps have encrypted lately.
    private(set) var encrypted: [(item: PasteboardItem, content: [UInt8])] = []

    mutating func encrypted(_ content: [UInt8], as item: PasteboardItem) {
        encrypted.append((item, content))
        guard encrypted.count > 16, let oldest = encrypted.firstIndex(where: { $0.item != self.content?.item }) else {
            return
        }
        encrypted.remove(at: oldest)
    }
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

    /// What is copied or pasted is to be dealt with next: by what is in force now.
    func expectPasteboard(_ event: DeviceEvent) {
        guard case .frame(let link, let frame) = event, let app = watch.links[link.number] else { return }
        switch frame {
        case .copy(let number, let item):
            guard let record = core?.state.apps[app] else { return }
            let isTaken = mayCopy(record, item)
            watch.pasteboard.expected.append((link, .copied(id: number, isTaken), app))
            guard isTaken else { return }
            watch.pasteboard.content = item.map { ($0, app) }
            watch.pasteboard.newest = item ?? watch.pasteboard.newest
            watch.pasteboard.isDoubtful = false
        case .paste(let number):
            guard let record = core?.state.apps[app] else { return }
            let item = watch.pasteboard.content?.item
            let mayRead = record.availability == .available || item?.isSecured == false
            watch.pasteboard.expected.append((link, .pasted(id: number, mayRead ? item : nil), app))
        default: break
        }
    }

    private func mayCopy(_ app: AppRecord, _ item: PasteboardItem?) -> Bool {
        guard app.authState == .authorized else { return false }
        guard item?.isSecured == true else { return app[.pasteboard].value == .pasteboard(.authorized) }
        return app[.pasteboard].value != .pasteboard(.unauthorized) && app.availability == .available
    }

    /// What an app has copied goes with its keys.
    func forgetCopied() {
        guard let source = watch.pasteboard.content?.source else { return }
        if core?.state.apps[source]?.authState == .retired { watch.pasteboard.content = nil }
    }

    /// What was copied by who may, and nothing else, is pasted, by who may, and not when its app has been retired since.
    func checkPasteboard(_ effects: [DeviceEffect]) {
        for (link, answer, app) in watch.pasteboard.expected {
            let told = effects.compactMap { effect -> AgentFrame? in
                guard case .send(link, let frame) = effect else { return nil }
                switch (frame, answer) {
                case (.copied(let id, _), .copied(let number, _)) where id == number: return frame
                case (.pasted(let id, _), .pasted(let number, _)) where id == number: return frame
                default: return nil
                }
            }
            guard let told = told.first else {
                // Its connection was not the app's any more.
                watch.pasteboard.isDoubtful = true
                continue
            }
            if told != answer, !watch.pasteboard.isDoubtful {
                world.fail(.confined, "\(name)/\(app) is told \(told), not \(answer)")
            }
        }
        watch.pasteboard.expected = []
        let retired = core?.state.apps.values.filter { $0.authState == .retired } ?? []
        if let app = retired.first(where: { core?.hasCopied($0.id) == true }) {
            world.fail(.confined, "\(name)/\(app.id) is retired, and what it has copied is still there")
        }
        // Retired and authorized by one message: nothing of it is left.
        guard let source = watch.pasteboard.content?.source else { return }
        for case .destroyKeys(source) in effects { watch.pasteboard.isDoubtful = true }
    }
}
