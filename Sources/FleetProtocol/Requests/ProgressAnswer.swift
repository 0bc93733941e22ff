/// The answer to `progress`: how far the devices have come with some documents.
package struct ProgressAnswer: Hashable, Sendable {
    /// Of the policies that the documents decide, over the devices that they speak to.
    package var rows: [StatusRow]
    /// Some of those that are still to come, who is there first.
    package var waiting: [Waiting]
    /// Devices that were to retire an app, whose keys may be elsewhere than where they have looked.
    package var otherDisks: [OtherDisk]
    package var superseded: [Superseded]
    /// The controller's: a later one than the change was made in says that a restore may have undone it, which revisions cannot
    /// tell. Nil from a controller of before it was told.
    package var epoch: Int64?

    package init(
        rows: [StatusRow] = [], waiting: [Waiting] = [], otherDisks: [OtherDisk] = [], superseded: [Superseded] = [],
        epoch: Int64? = nil
    ) {
        self.rows = rows
        self.waiting = waiting
        self.otherDisks = otherDisks
        self.superseded = superseded
        self.epoch = epoch
    }

    /// An app's policy on a device that has not finished.
    package struct Waiting: Hashable, Sendable {
        package let device: DeviceID
        package let app: AppID
        package let policy: Policy
        package let outcome: Outcome
        /// Of `auth`, where the app is to be retired.
        package let retirement: Retirement?
        package let isOnline: Bool

        package init(
            device: DeviceID, app: AppID, policy: Policy, outcome: Outcome, retirement: Retirement?, isOnline: Bool
        ) {
            self.device = device
            self.app = app
            self.policy = policy
            self.outcome = outcome
            self.retirement = retirement
            self.isOnline = isOnline
        }
    }

    /// A disk of which nobody can say whether the keys are gone.
    package struct OtherDisk: Hashable, Sendable {
        package let device: DeviceID
        package let app: AppID
        package let place: Place

        package enum Place: Hashable, Sendable {
            /// The device is counted as it is now, and had another disk before.
            case earlier
            /// A copy of the disk was heard, or an older state of it: the device is counted by what one of them says.
            case copied
            /// The device was removed behind the retirement, and had not said that the keys are destroyed.
            case removed
        }

        package init(device: DeviceID, app: AppID, place: Place) {
            self.device = device
            self.app = app
            self.place = place
        }
    }

    /// A document that somebody has changed since it stood at the revision that is asked about.
    package struct Superseded: Hashable, Sendable {
        package let app: AppID
        package let layer: Layer
        package let aspect: Aspect
        /// At which it stands now.
        package let revision: Int64
        /// Who has changed it.
        package let by: String
        package let isDeleted: Bool

        package init(app: AppID, layer: Layer, aspect: Aspect, revision: Int64, by: String, isDeleted: Bool) {
            self.app = app
            self.layer = layer
            self.aspect = aspect
            self.revision = revision
            self.by = by
            self.isDeleted = isDeleted
        }
    }
}

extension ProgressAnswer: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var answer = ProgressAnswer()
        try reader.object { name, value in
            switch name {
            case "rows": answer.rows = try value.values(limit: 100_000)
            case "waiting": answer.waiting = try value.values(limit: 1_000)
            case "otherDisks": answer.otherDisks = try value.values(limit: 1_000)
            case "superseded": answer.superseded = try value.values(limit: 1_000)
            case "epoch": answer.epoch = try value.integer(in: 1...JSONValue.largestInteger)
            default: break
            }
        }
        self = answer
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("rows", rows)
            writer.member("waiting", waiting)
            if !otherDisks.isEmpty { writer.member("otherDisks", otherDisks) }
            if !superseded.isEmpty { writer.member("superseded", superseded) }
            writer.member("epoch", ifPresent: epoch)
        }
    }
}

extension ProgressAnswer.Waiting: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var device: DeviceID?
        var app: AppID?
        var policy: Policy?
        var outcome: Outcome?
        var retirement: Retirement?
        var isOnline = false
        try reader.object { name, value in
            switch name {
            case "device": device = try value.value()
            case "app": app = try value.value()
            case "policy": policy = try value.value()
            case "outcome": outcome = try value.value()
            case "retirement": retirement = try value.value()
            case "online": isOnline = try value.bool()
            default: break
            }
        }
        self.init(
            device: try required(device, "device"), app: try required(app, "app"),
            policy: try required(policy, "policy"), outcome: try required(outcome, "outcome"), retirement: retirement,
            isOnline: isOnline)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("device", device)
            writer.member("app", app)
            writer.member("policy", policy)
            writer.member("outcome", outcome)
            writer.member("retirement", ifPresent: retirement)
            writer.member("online", isOnline)
        }
    }
}

extension ProgressAnswer.OtherDisk: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var device: DeviceID?
        var app: AppID?
        var place = Place.earlier
        try reader.object { name, value in
            switch name {
            case "device": device = try value.value()
            case "app": app = try value.value()
            case "removed": if try value.bool() { place = .removed }
            case "copied": if try value.bool() { place = .copied }
            default: break
            }
        }
        self.init(device: try required(device, "device"), app: try required(app, "app"), place: place)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("device", device)
            writer.member("app", app)
            if place != .earlier { writer.member(place == .removed ? "removed" : "copied", true) }
        }
    }
}

extension ProgressAnswer.Superseded: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var app: AppID?
        var layer: Layer?
        var aspect: Aspect?
        var revision: Int64?
        var by: String?
        var isDeleted = false
        try reader.object { name, value in
            switch name {
            case "app": app = try value.value()
            case "target": layer = try value.value()
            case "aspect": aspect = try value.value()
            case "revision": revision = try value.integer()
            case "by": by = try value.message(limit: 100)
            case "deleted": isDeleted = try value.bool()
            default: break
            }
        }
        self.init(
            app: try required(app, "app"), layer: try required(layer, "target"),
            aspect: try required(aspect, "aspect"), revision: try required(revision, "revision"),
            by: try required(by, "by"), isDeleted: isDeleted)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("target", layer)
            writer.member("aspect", aspect)
            writer.member("revision", revision)
            writer.member("by", by)
            writer.member("deleted", isDeleted)
        }
    }
}
