/// How far the controller has come: in every heartbeat and hello. Time and topic are signed with it.
package struct ControllerClock: Hashable, Sendable {
    package let fleet: RandomID
    package let topic: String
    package let epoch: Int64
    /// The latest revision of the fleet.
    package let revision: Int64
    package let at: Timestamp

    package init(fleet: RandomID, topic: String, epoch: Int64, revision: Int64, at: Timestamp) {
        self.fleet = fleet
        self.topic = topic
        self.epoch = epoch
        self.revision = revision
        self.at = at
    }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("v", 1)
        writer.member("fleet", fleet)
        writer.member("topic", topic)
        writer.member("epoch", epoch)
        writer.member("revision", revision)
        writer.member("at", at)
    }

    struct Members {
        var version: Int64?
        var fleet: RandomID?
        var topic: String?
        var epoch: Int64?
        var revision: Int64?
        var at: Timestamp?

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "v": version = try value.version()
            case "fleet": fleet = try value.value()
            case "topic": topic = try value.string(limit: 512)
            case "epoch": epoch = try value.integer(in: 1...JSONValue.largestInteger)
            case "revision": revision = try value.integer()
            case "at": at = try value.value()
            default: break
            }
        }

        func clock() throws -> ControllerClock {
            _ = try required(version, "v")
            return ControllerClock(
                fleet: try required(fleet, "fleet"), topic: try required(topic, "topic"),
                epoch: try required(epoch, "epoch"), revision: try required(revision, "revision"),
                at: try required(at, "at"))
        }
    }
}

/// The signed sign of life of the controller, every minute.
package struct Heartbeat: Hashable, Sendable, JSONCodable {
    package let clock: ControllerClock

    package init(clock: ControllerClock) { self.clock = clock }

    package init(from reader: inout JSONReader) throws {
        var members = ControllerClock.Members()
        try reader.object { name, value in try members.read(name, &value) }
        clock = try members.clock()
    }

    package func write(to writer: inout JSONWriter) { writer.object { clock.writeMembers(to: &$0) } }
}

/// Which events of one boot of a device are stored at the controller: all up to `number`.
package struct EventMark: Hashable, Sendable, JSONCodable {
    package var incarnation: Int64
    package var boot: Int64
    package var number: Int64

    package init(incarnation: Int64, boot: Int64, number: Int64) {
        self.incarnation = incarnation
        self.boot = boot
        self.number = number
    }

    package init(from reader: inout JSONReader) throws {
        var incarnation: Int64?
        var boot: Int64?
        var number: Int64?
        try reader.object { name, value in
            switch name {
            case "incarnation": incarnation = try value.integer()
            case "boot": boot = try value.integer()
            case "number": number = try value.integer()
            default: break
            }
        }
        self.incarnation = try required(incarnation, "incarnation")
        self.boot = try required(boot, "boot")
        self.number = try required(number, "number")
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("incarnation", incarnation)
            writer.member("boot", boot)
            writer.member("number", number)
        }
    }
}

/// The controller's answer to a device that has come online: what the broker holds is the controller's wish. Said again
/// to one that stays, now and then: it answers with its presence, and the controller compares.
package struct Hello: Hashable, Sendable, JSONCodable {
    /// What the device's presence, or a topic of it that somebody has cleared, has shown to be lost.
    package enum Lost: String, Hashable, Sendable, CaseIterable {
        /// To the controller: the device reports all its apps again.
        case statuses
        /// To the device: it subscribes to its documents again.
        case documents
    }

    package let clock: ControllerClock
    package let device: DeviceID
    /// The `connection` of the presence that it answers.
    package let connection: RandomID
    /// The `nonce` of that presence, or its `connection` where it bore none; nil from a controller of before there were nonces.
    package let nonce: RandomID?
    /// What is stored of the boot that the presence named; nil when nothing is.
    package let received: EventMark?
    package let lost: Set<Lost>
    /// Beside lost documents: which ones the device is to have, tombstones and the trust document left out. Once the broker
    /// has shown just these, whatever else the device keeps was deleted so long ago that nobody has the tombstone any more, or
    /// is of an earlier epoch and nobody's wish.
    package let documents: Digest?

    package init(
        clock: ControllerClock, device: DeviceID, connection: RandomID, nonce: RandomID?, received: EventMark?,
        lost: Set<Lost> = [], documents: Digest? = nil
    ) {
        self.clock = clock
        self.device = device
        self.connection = connection
        self.nonce = nonce
        self.received = received
        self.lost = lost
        self.documents = documents
    }

    package init(from reader: inout JSONReader) throws {
        var members = ControllerClock.Members()
        var device: DeviceID?
        var connection: RandomID?
        var nonce: RandomID?
        var received: EventMark?
        var lost: Set<Lost> = []
        var documents: Digest?
        try reader.object { name, value in
            switch name {
            case "device": device = try value.value()
            case "connection": connection = try value.value()
            case "nonce": nonce = try value.value()
            case "received": received = try value.value()
            case "lost":
                // What a newer controller may add is not for this agent.
                try value.array(limit: 16) {
                    if let known = Lost(rawValue: try $0.string(limit: 32)) { lost.insert(known) }
                }
            case "documents": documents = try value.value()
            default: try members.read(name, &value)
            }
        }
        clock = try members.clock()
        self.device = try required(device, "device")
        self.connection = try required(connection, "connection")
        self.nonce = nonce
        self.received = received
        self.lost = lost
        self.documents = documents
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            clock.writeMembers(to: &writer)
            writer.member("device", device)
            writer.member("connection", connection)
            writer.member("nonce", ifPresent: nonce)
            writer.member("received", ifPresent: received)
            if !lost.isEmpty { writer.member("lost", Lost.allCases.filter(lost.contains).map(\.rawValue)) }
            writer.member("documents", ifPresent: documents)
        }
    }
}

/// What the controller has committed of a device's events: only now may the device forget them.
package struct Received: Hashable, Sendable, JSONCodable {
    package let fleet: RandomID
    package let topic: String
    package let mark: EventMark

    package init(fleet: RandomID, topic: String, mark: EventMark) {
        self.fleet = fleet
        self.topic = topic
        self.mark = mark
    }

    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var fleet: RandomID?
        var topic: String?
        var mark: EventMark?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "fleet": fleet = try value.value()
            case "topic": topic = try value.string(limit: 512)
            case "through": mark = try value.value()
            default: break
            }
        }
        _ = try required(version, "v")
        self.fleet = try required(fleet, "fleet")
        self.topic = try required(topic, "topic")
        self.mark = try required(mark, "through")
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("fleet", fleet)
            writer.member("topic", topic)
            writer.member("through", mark)
        }
    }
}
