import FleetProtocol

/// The documents about one app as far as counting needs them: which decides for a class, at which revision, since when.
struct AppWishes: Sendable {
    struct Document: Hashable, Sendable {
        let layer: Layer
        let aspect: Aspect
        let revision: Int64
        /// The revision since which it says the same; at the earliest the first of its epoch.
        let change: Int64
        let issuedAt: Timestamp
        let isTombstone: Bool
        let isRetired: Bool
    }

    /// What a device has to report to have received what is wanted of it.
    struct Expectation: Hashable, Sendable {
        /// The deciding document; nil for the default.
        let source: Address?
        let revision: Int64
        /// It is to be retired.
        let isRetired: Bool
        /// The revisions at which the document said this: it may have been signed again.
        let same: ClosedRange<Int64>
        /// Since when it is so; of a device-app that came into its class later, since then.
        let since: Timestamp

        /// The default of a policy.
        static func nothing(since: Timestamp) -> Self {
            Self(source: nil, revision: 0, isRetired: false, same: 0...0, since: since)
        }
    }

    let app: AppID
    private var documents: [Place: Document] = [:]

    private struct Place: Hashable {
        let layer: Layer
        let aspect: Aspect
    }

    init(app: AppID, documents: [Document]) {
        self.app = app
        for document in documents {
            self.documents[Place(layer: document.layer, aspect: document.aspect)] = document
        }
    }

    /// What a device-app of `overrides` is to have of a policy.
    ///
    /// The first layer of the chain that says something decides; for `auth` the first that says retired, if one does.
    func expectation(of policy: Policy, for overrides: OverrideClass, at now: Timestamp) -> Expectation {
        guard let aspect = policy.aspect else { return .nothing(since: .longAgo) }
        let chain = overrides.chain(of: aspect).compactMap { documents[Place(layer: $0, aspect: aspect)] }
        let live = chain.filter { !$0.isTombstone }
        guard let deciding = live.first(where: \.isRetired) ?? live.first else {
            // Nothing is said: since what was said before has been withdrawn.
            return .nothing(since: Self.newest(chain, at: now) ?? .longAgo)
        }
        // A retirement may have ended at any layer of the chain, and with it the right of its document to decide.
        let issuedAt = aspect == .auth ? Self.newest(chain, at: now) ?? deciding.issuedAt : deciding.issuedAt
        return Expectation(
            source: .desired(deciding.layer, app, aspect), revision: deciding.revision, isRetired: deciding.isRetired,
            same: min(deciding.change, deciding.revision)...deciding.revision, since: issuedAt)
    }

    /// Whether one of these layers wants a device-app of `overrides` to be retired.
    func retire(by layers: Set<Layer>, _ overrides: OverrideClass) -> Bool {
        overrides.chain(of: .auth).contains { layer in
            layers.contains(layer) && documents[Place(layer: layer, aspect: .auth)]?.isRetired == true
        }
    }

    /// When something was said last, but for what a clock that was wrong has put ahead of everything since.
    private static func newest(_ documents: [Document], at now: Timestamp) -> Timestamp? {
        let times = documents.map(\.issuedAt)
        return times.filter { $0 <= Tally.recent(at: now).end }.max() ?? times.max()
    }
}

extension Shape.Entry {
    /// How far the device-app is with what is expected now.
    ///
    /// Only the revision that is wanted counts: whatever was reported of another one is pending.
    func outcome(against expectation: AppWishes.Expectation) -> Outcome {
        hasReceived(expectation) && attempted == received ? outcome : .pending
    }

    func hasReceived(_ expectation: AppWishes.Expectation) -> Bool {
        source == expectation.source && received == expectation.revision
    }

    /// Also before it was signed again.
    func hasReceivedTheSame(as expectation: AppWishes.Expectation) -> Bool {
        source == expectation.source && expectation.same.contains(received)
    }
}

extension Outcome {
    /// Whether something is still to come from the device.
    var isFinal: Bool {
        switch self {
        case .applied, .error, .unsupported, .rejected, .expired: true
        case .pending, .delivered, .awaitingCode: false
        }
    }
}

extension Timestamp {
    /// Before there was anything to answer.
    fileprivate static let longAgo = Timestamp(milliseconds: 0)
}
