/// Whether a device, or the controller, is connected. Retained, and the will of the connection.
package struct Presence: Hashable, Sendable {
    package enum State: String, CaseIterable, Sendable { case online, offline }

    /// An app that has registered on the device.
    package struct App: Hashable, Sendable {
        package var id: AppID
        package var sdk: String
        /// The optional callbacks that it has.
        package var implements: [String]
        /// The `seq` of its newest status on this connection; nil before the first. A controller whose copy is older has
        /// missed one.
        package var reported: Int64?

        package init(id: AppID, sdk: String, implements: [String], reported: Int64? = nil) {
            self.id = id
            self.sdk = sdk
            self.implements = implements
            self.reported = reported
        }
    }

    /// The documents that the device has, tombstones left out. Every revision is one document's, so a device that has
    /// missed one has another sum.
    package struct Documents: Hashable, Sendable {
        package private(set) var count: Int64 = 0
        /// The sum of their revisions, modulo 2^53.
        package private(set) var sum: Int64 = 0
        /// The version of its trust document.
        package var trust: Int64

        package init(trust: Int64) { self.trust = trust }

        package mutating func add(_ revision: Int64) {
            count += 1
            sum = (sum &+ revision) & JSONValue.largestInteger
        }
    }

    package static let maximumSize = 64 * 1_024
    /// Apps that one device may have.
    package static let maximumApps = 64

    package var state: State
    package var incarnation: Int64
    package var boot: Int64
    /// That of the start before, 0 at the first; nil where it is not told. One that is older than what was heard of since is an
    /// image's.
    package var previousBoot: Int64?
    /// Names the disk, and all copies of it; nil where it is not told.
    package var disk: Int64?
    /// Random for each connection: an offline of another connection is an old will.
    package var connection: RandomID
    package var since: Timestamp
    package var agent: String
    package var apps: [App]
    /// The highest revision that the device knows of; 0 where its enrolment alone has told it of the epoch. A controller
    /// whose store is behind has lost something, also when the broker and every status have lost it too.
    package var highest: Revision?
    /// What the device has below desired/ of its groups and its apps; nil while it still fetches them.
    package var documents: Documents?
    /// Asks for a hello that answers it, since words of the controller come late on this connection; nil when none is awaited.
    package var nonce: RandomID?

    package init(
        state: State, incarnation: Int64, boot: Int64, previousBoot: Int64? = nil, disk: Int64? = nil,
        connection: RandomID, since: Timestamp, agent: String, apps: [App], highest: Revision? = nil,
        documents: Documents? = nil, nonce: RandomID? = nil
    ) {
        self.state = state
        self.incarnation = incarnation
        self.boot = boot
        self.previousBoot = previousBoot
        self.disk = disk
        self.connection = connection
        self.since = since
        self.agent = agent
        self.apps = apps
        self.highest = highest
        self.documents = documents
        self.nonce = nonce
    }

    /// The same, as a will says it: offline, and nothing that will have changed by then.
    package var will: Presence {
        var copy = self
        copy.state = .offline
        copy.previousBoot = nil
        copy.apps = []
        copy.highest = nil
        copy.documents = nil
        copy.nonce = nil
        return copy
    }
}

extension Presence: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var state: State?
        var incarnation: Int64?
        var boot: Int64?
        var previousBoot: Int64?
        var disk: Int64?
        var connection: RandomID?
        var since: Timestamp?
        var agent: String?
        var apps: [App] = []
        var highest: Revision?
        var documents: Documents?
        var nonce: RandomID?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "state": state = try value.oneOf()
            case "incarnation": incarnation = try value.integer()
            case "boot": boot = try value.integer()
            case "previousBoot": previousBoot = try value.integer()
            case "disk": disk = try value.integer()
            case "connection": connection = try value.value()
            case "since": since = try value.value()
            case "agent": agent = try value.message(limit: 64)
            case "apps": apps = try value.values(limit: Self.maximumApps)
            case "highest": highest = try Self.revision(&value)
            case "documents": documents = try value.value()
            case "nonce": nonce = try value.value()
            default: break
            }
        }
        _ = try required(version, "v")
        self.init(
            state: try required(state, "state"), incarnation: try required(incarnation, "incarnation"),
            boot: try required(boot, "boot"), previousBoot: previousBoot, disk: disk,
            connection: try required(connection, "connection"), since: try required(since, "since"),
            agent: try required(agent, "agent"), apps: apps, highest: highest, documents: documents, nonce: nonce)
    }

    private static func revision(_ reader: inout JSONReader) throws -> Revision {
        var epoch: Int64?
        var number: Int64?
        try reader.object { name, value in
            switch name {
            case "epoch": epoch = try value.integer(in: 1...JSONValue.largestInteger)
            case "revision": number = try value.integer()
            default: break
            }
        }
        return Revision(epoch: try required(epoch, "epoch"), number: try required(number, "revision"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("state", state.rawValue)
            writer.member("incarnation", incarnation)
            writer.member("boot", boot)
            writer.member("connection", connection)
            writer.member("since", since)
            writer.member("agent", agent)
            writer.member("disk", ifPresent: disk)
            guard state == .online else { return }
            writer.member("previousBoot", ifPresent: previousBoot)
            writer.member("apps", apps)
            if let highest {
                writer.member("highest") { writer in
                    writer.object { writer in
                        writer.member("epoch", highest.epoch)
                        writer.member("revision", highest.number)
                    }
                }
            }
            writer.member("documents", ifPresent: documents)
            writer.member("nonce", ifPresent: nonce)
        }
    }
}

extension Presence.Documents: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var count: Int64?
        var sum: Int64?
        var trust: Int64?
        try reader.object { name, value in
            switch name {
            case "count": count = try value.integer()
            case "sum": sum = try value.integer()
            case "trust": trust = try value.integer()
            default: break
            }
        }
        self.count = try required(count, "count")
        self.sum = try required(sum, "sum")
        self.trust = try required(trust, "trust")
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("count", count)
            writer.member("sum", sum)
            writer.member("trust", trust)
        }
    }
}

extension Presence.App: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var id: AppID?
        var sdk: String?
        var implements: [String] = []
        var reported: Int64?
        try reader.object { name, value in
            switch name {
            case "id": id = try value.value()
            case "sdk": sdk = try value.message(limit: 64)
            case "implements":
                try value.array(limit: 32) { implements.append(try $0.message(limit: 32)) }
            case "reported": reported = try value.integer()
            default: break
            }
        }
        self.init(
            id: try required(id, "id"), sdk: try required(sdk, "sdk"), implements: implements, reported: reported)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            writer.member("sdk", sdk)
            writer.member("implements", implements)
            if let reported { writer.member("reported", reported) }
        }
    }
}
