package import FleetProtocol

/// What was copied last at this device. It ends with the agent's process, and with its app's retirement.
struct Pasteboard: Sendable {
    let item: PasteboardItem
    let source: AppID
}

extension DeviceCore {
    mutating func copy(_ item: PasteboardItem?, from id: AppID, _ number: Int64, on link: LinkID) {
        let isAllowed = state.apps[id].map { mayCopy(from: $0, isSecured: item?.isSecured ?? false) } ?? false
        if isAllowed { pasteboard = item.map { Pasteboard(item: $0, source: id) } }
        batch.effects.append(.send(link, .copied(id: number, isAllowed)))
    }

    /// Whether what was copied last is this app's.
    package func hasCopied(_ id: AppID) -> Bool { pasteboard?.source == id }

    private func mayCopy(from app: AppRecord, isSecured: Bool) -> Bool {
        guard app.authState == .authorized, case .pasteboard(let policy) = app[.pasteboard].value else { return false }
        return isSecured ? policy != .unauthorized && app.availability == .available : policy == .authorized
    }

    /// What is secured only an app gets that may have the keys for it.
    mutating func paste(into id: AppID, _ number: Int64, on link: LinkID) {
        let mayReadAll = state.apps[id]?.availability == .available
        let item = pasteboard.flatMap { mayReadAll || !$0.item.isSecured ? $0.item : nil }
        batch.effects.append(.send(link, .pasted(id: number, item)))
    }
}
