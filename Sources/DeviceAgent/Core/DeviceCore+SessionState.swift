import FleetProtocol

extension DeviceCore {
    /// One connection to the broker.
    struct Session {
        struct Barrier {
            enum Purpose {
                /// Trust, membership, groups and control topics stand.
                case first
                /// The documents of these apps are here, and of these groups when they are new.
                case documents(Set<AppID>, groups: [GroupID]?)
                /// What was asked for once more is here.
                case again
                /// The broker still sends what is to be acknowledged.
                case echo
            }

            let purpose: Purpose
            /// By the running time.
            let askedAt: Int64
            /// Its marker is under way.
            var isMarked = false

            var isFirst: Bool { if case .first = purpose { true } else { false } }
            var isEcho: Bool { if case .echo = purpose { true } else { false } }
        }

        let connection: RandomID
        /// 0 to 249, from the connection's random name: by as many milliseconds, or thousandths, this device is later.
        let draw: Int64
        let since: Timestamp
        var barriers: [Int64: Barrier] = [:]
        /// The device has asked for another connection.
        var isGivenUp = false
        var isPastFirst = false
        /// Whether the fleet has been told of this connection.
        var isPresent = false
        /// Groups that were subscribed to on this connection.
        var groups: Set<GroupID>
        /// Apps whose documents were fetched on this connection.
        var fetched = AppList()
        /// The groups that are to count once their documents are here.
        var wantedGroups: [GroupID]?
        /// The barrier behind which they are; nil when nothing has to be fetched for them. An earlier one, of groups that
        /// were left and joined again meanwhile, says nothing of what was dropped in between.
        var groupBarrier: Int64?
        /// Groups that count, and that the membership did not name for a while: what was said to them meanwhile did not come
        /// here, or was not listened to.
        var leftGroups: Set<GroupID> = []
        /// A membership document came, since the last that counts, that an unknown key has signed.
        var isMembershipUnread = false
        var isGreeted = false
        var freshness: Freshness
        /// When a further greeting was answered, by the running time.
        var greetingAnsweredAt: Int64?
        /// When a greeting is answered that came too soon after the one before.
        var greetingDueAt: Int64?
        /// The controller's, by its greeting.
        var epoch: Int64?
        /// What the broker was asked last to show once more, since some documents were of an earlier epoch.
        var showing: Showing?
        /// What the controller says that there should be, where it has missed or found too much.
        var wanted: Wanted?
        /// The epoch and time that the controller said last on this connection.
        var controllerTime: (epoch: Int64, at: Timestamp)?
        /// What unknown keys have signed, the newest of each topic, for the next trust document.
        private(set) var held: [(topic: String, payload: [UInt8])] = []
        /// When the trust document was asked for once more, by the running time.
        var trustAskedAt: Int64?
        var reportsDueAt: Int64?
        var areReportsLive = false
        /// The `seq` of each app's newest status on this connection.
        var reported = AppTable<Int64>()
        var eventsDueAt: Int64?
        /// When presence and markers are said again that nobody has answered, by the running time.
        private(set) var retryDueAt: Int64
        private var retryPause = DeviceCore.firstRetry

        /// All documents are shown once more, those of these apps among them.
        struct Showing {
            /// The marker behind which it has.
            let barrier: Int64
            let epoch: Int64
            let apps: Set<AppID>
        }

        /// Which documents there should be, by the controller.
        struct Wanted {
            /// The marker behind which the broker has shown all that it has.
            let barrier: Int64
            let documents: Digest
            /// The latest revision of the fleet when that was signed.
            let latest: Revision
            /// What it was asked to show: of apps and groups that came later it has shown nothing for this.
            let apps: Set<AppID>
            let groups: Set<GroupID>
            /// Where it has shown the one that is kept.
            var shown: Set<Address> = []
        }

        /// The broker has shown all that it was asked for.
        var hasAllShown: Bool { barriers.values.allSatisfy(\.isEcho) }
        /// Since when the oldest marker, or subscription, is unanswered.
        var unansweredSince: Int64? { isGivenUp ? nil : barriers.values.map(\.askedAt).min() }

        /// Whether an answer to presence or markers is still to come.
        private var isWaiting: Bool { !isGreeted || !hasAllShown }

        init(_ connection: RandomID, since: Timestamp, groups: [GroupID], running: Int64) {
            self.connection = connection
            draw = Int64(connection.text.utf8.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) } % 250)
            self.since = since
            self.groups = Set(groups)
            freshness = Freshness(since: running)
            retryDueAt = 0
            retry(after: DeviceCore.firstRetry, running: running)
        }

        /// A controller that stays away is not told by the whole fleet at one moment either.
        private mutating func retry(after pause: Int64, running: Int64) {
            retryDueAt = running + pause + pause * draw / 1_000
        }

        /// A marker will be waited for, and for no longer since pauses have grown for something else.
        mutating func expectMarker(running: Int64) {
            let due = retryDueAt
            retry(after: DeviceCore.firstRetry, running: running)
            retryDueAt = min(due, retryDueAt)
        }

        /// A hello or a marker has come: with nothing more to wait for, the next hello is.
        mutating func answered(running: Int64) {
            guard !isWaiting else { return }
            retry(after: DeviceCore.longestSilence, running: running)
            retryPause = DeviceCore.firstRetry
        }

        mutating func waitLonger(running: Int64) {
            retryPause = min(retryPause * 2, DeviceCore.longestRetry)
            retry(after: retryPause, running: running)
        }

        mutating func hold(_ topic: String, _ payload: [UInt8]) {
            held.removeAll { $0.topic == topic }
            held.append((topic, payload))
        }

        mutating func takeHeld() -> [(topic: String, payload: [UInt8])] {
            defer { held = [] }
            return held
        }
    }
}
