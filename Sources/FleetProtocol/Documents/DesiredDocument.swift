/// The payload of a signed document below `desired/`: what a layer says about one aspect of an app, a group's meta, or a
/// device's groups.
package struct DesiredDocument: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case aspect(DesiredValue)
        case groupMeta(GroupMeta)
        case membership([GroupID])
        /// The layer says nothing any more.
        case tombstone
    }

    /// The fleet that it was made for.
    package let fleet: RandomID
    /// Where it belongs; it counts nowhere else.
    package let address: Address
    package let topic: String
    package let revision: Revision
    /// The revision at which an operator last changed it: signing it again keeps it.
    package let change: Revision
    package let issuedAt: Timestamp
    package let content: Content

    package init(
        fleet: RandomID, fleetID: FleetID, address: Address, revision: Revision, change: Revision,
        issuedAt: Timestamp, content: Content
    ) {
        self.fleet = fleet
        self.address = address
        topic = address.topic(in: fleetID)
        self.revision = revision
        self.change = change
        self.issuedAt = issuedAt
        self.content = content
    }

    /// Reads a payload that claims to belong to a topic of `fleetID`. The signature has been checked by the caller.
    package init(payload: [UInt8], in fleetID: FleetID) throws {
        self = try JSONReader.read(payload, limit: SignedDocument.maximumSize) { reader in
            var members = Members()
            try reader.object { name, value in try members.read(name, &value) }
            return try members.document(in: fleetID, reader)
        }
    }

    package var isTombstone: Bool { content == .tombstone }

    private struct Members {
        var version: Int64?
        var fleet: RandomID?
        var topic: String?
        var epoch: Int64?
        var revision: Int64?
        var change: Int64?
        var changeEpoch: Int64?
        var issuedAt: Timestamp?
        var isDeleted = false
        var value: Range<Int>?

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "v": version = try value.version()
            case "fleet": fleet = try value.value()
            case "topic": topic = try value.string(limit: 512)
            case "epoch": epoch = try value.integer(in: 1...JSONValue.largestInteger)
            case "revision": revision = try value.integer(in: 1...JSONValue.largestInteger)
            case "change": change = try value.integer(in: 1...JSONValue.largestInteger)
            case "changeEpoch": changeEpoch = try value.integer(in: 1...JSONValue.largestInteger)
            case "issuedAt": issuedAt = try value.value()
            case "deleted": isDeleted = try value.bool()
            case "value": self.value = try value.extent()
            default: break
            }
        }

        func document(in fleetID: FleetID, _ reader: borrowing JSONReader) throws -> DesiredDocument {
            _ = try required(version, "v")
            let topic = try required(topic, "topic")
            guard let address = Address(topic: topic, in: fleetID) else {
                throw FleetProtocolError(
                    .mismatch, "'\(Text.printable(topic, limit: 200))' is no topic of this fleet", at: "topic")
            }
            switch address {
            case .desired, .groupMeta, .membership: break
            case .trust, .reply, .presence, .heartbeat, .hello, .received, .barrier, .request, .response:
                throw FleetProtocolError(.mismatch, "no document of this kind stands at this topic", at: "topic")
            }
            let epoch = try required(epoch, "epoch")
            let revision = Revision(epoch: epoch, number: try required(revision, "revision"))
            let change = Revision(epoch: changeEpoch ?? epoch, number: try required(change, "change"))
            return DesiredDocument(
                fleet: try required(fleet, "fleet"), fleetID: fleetID, address: address, revision: revision,
                change: change, issuedAt: try required(issuedAt, "issuedAt"),
                content: try content(at: address, reader))
        }

        private func content(at address: Address, _ reader: borrowing JSONReader) throws -> Content {
            if isDeleted {
                guard value == nil else {
                    throw FleetProtocolError(.value, "a deleted document has no value", at: "value")
                }
                return .tombstone
            }
            do {
                return try reader.read(try required(value, "value")) { reader in
                    switch address {
                    case .desired(_, _, let aspect): .aspect(try DesiredValue(of: aspect, from: &reader))
                    case .groupMeta: .groupMeta(try GroupMeta(from: &reader))
                    case .membership: .membership(try GroupID.membership(from: &reader))
                    default: throw FleetProtocolError(.mismatch, "no document of this kind stands at this topic")
                    }
                }
            } catch let error as FleetProtocolError where error.path != "value" {
                throw error.inside("value")
            }
        }
    }
}

extension DesiredDocument: JSONWritable {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("fleet", fleet)
            writer.member("topic", topic)
            writer.member("epoch", revision.epoch)
            writer.member("revision", revision.number)
            writer.member("change", change.number)
            if change.epoch != revision.epoch { writer.member("changeEpoch", change.epoch) }
            writer.member("issuedAt", issuedAt)
            switch content {
            case .aspect(let value): writer.member("value", value)
            case .groupMeta(let meta): writer.member("value", meta)
            case .membership(let groups):
                writer.member("value") { $0.object { $0.member("groups", groups) } }
            case .tombstone: writer.member("deleted", true)
            }
        }
    }
}

/// What is said about a group: among a device's groups the higher priority decides, then the smaller id.
package struct GroupMeta: Hashable, Sendable, JSONCodable {
    package static let priorities: ClosedRange<Int64> = -1_000_000...1_000_000

    package var priority: Int64

    package init(priority: Int64) { self.priority = priority }

    package init(from reader: inout JSONReader) throws {
        var priority: Int64?
        try reader.object { name, value in
            if name == "priority" { priority = try value.integer(in: Self.priorities) }
        }
        self.priority = try required(priority, "priority")
    }

    package func write(to writer: inout JSONWriter) { writer.object { $0.member("priority", priority) } }
}

extension GroupID {
    /// The groups in the value of a membership document: at most 64, each once.
    static func membership(from reader: inout JSONReader) throws -> [GroupID] {
        var groups: [GroupID]?
        try reader.object { name, value in if name == "groups" { groups = try value.values(limit: 64) } }
        return Array(Set(try required(groups, "groups"))).sorted()
    }
}
