package import FleetProtocol

/// Copying and pasting.
extension AppSession {
    package enum Destination: Hashable, Sendable {
        case nowhere
        /// The pasteboard that the app has itself.
        case device
        case agent(PasteboardItem)
    }

    /// Where what the app copies may go, as its policies are at this moment. What they block is reported.
    package mutating func destination(
        of content: [UInt8], withPasteboard: Bool
    ) throws -> (Destination, [Effect]) {
        try mustBeReady(for: "something was copied")
        if case .auth(.authorized, _) = properties[.auth], properties[.pasteboard] == .pasteboard(.secureCopy) {
            return (.agent(try usableKeys().sealed(content)), [])
        }
        let (isAllowed, effects) = try request(.copy)
        guard isAllowed else { return (.nowhere, effects) }
        return (withPasteboard ? .device : .agent(PasteboardItem(content, isSecured: false)), effects)
    }

    /// The id under which the answer comes; nil where nobody would answer. nil as item: what the agent has from before is to be
    /// pasted no more.
    package mutating func copy(_ item: PasteboardItem?) -> (Int64?, [Effect]) {
        // To forget costs nothing, and must not be forgotten itself.
        inquireOfPasteboard(atMost: item == nil ? .max : Self.maximumCopying) { .copy(id: $0, item) }
    }

    package mutating func paste() -> (Int64?, [Effect]) {
        inquireOfPasteboard(atMost: Self.maximumCopying) { .paste(id: $0) }
    }

    /// An agent from before would end the connection over a frame that it does not know.
    private mutating func inquireOfPasteboard(
        atMost limit: Int, _ frame: (_ id: Int64) -> AppFrame
    ) -> (Int64?, [Effect]) {
        guard phase == .ready, connection == .open, hasPasteboard, copying.count < limit else { return (nil, []) }
        let id = inquire(frame)
        copying.insert(id)
        return (id, flush())
    }

    private static let maximumCopying = 4

    /// The agent has not taken what the app copied: it has heard of less than the app reads, whose callback comes.
    package mutating func refusedCopy(isSecured: Bool) throws -> [Effect] {
        try mustBeReady(for: "something was copied")
        if isSecured { _ = try usableKeys() }
        ask { .blocked(.copy, target: nil, number: $0) }
        queue(.attempted(.copy(.unauthorized)))
        return flush()
    }

    /// nil for what this app cannot read now.
    package func content(of item: PasteboardItem) -> PasteboardContent? {
        if !item.isSecured { return PasteboardContent(encoded: item.content) }
        return (try? usableKeys()).flatMap { $0.opened(item) }.flatMap(PasteboardContent.init(encoded:))
    }
}
