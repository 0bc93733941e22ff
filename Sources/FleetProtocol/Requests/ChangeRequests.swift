/// The body of `apply`: one atomic change of the desired state, all of it or nothing.
package struct ApplyRequest: Hashable, Sendable {
    package struct Change: Hashable, Sendable {
        package let app: AppID
        package let layer: Layer
        package let aspect: Aspect
        package let value: DesiredValue
        /// The revision that the change was made from (0: there was none): refused when it has moved since.
        package let basedOn: Int64?

        package init(app: AppID, layer: Layer, aspect: Aspect, value: DesiredValue, basedOn: Int64? = nil) {
            self.app = app
            self.layer = layer
            self.aspect = aspect
            self.value = value
            self.basedOn = basedOn
        }
    }

    package let changes: [Change]
    /// For the history, in the operator's words.
    package let why: String?
    /// Whether what is so already is a change all the same: a new auth document ends retirements that came later.
    package let isAgain: Bool

    package init(changes: [Change], why: String? = nil, isAgain: Bool = false) {
        self.changes = changes
        self.why = why
        self.isAgain = isAgain
    }
}

extension ApplyRequest: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var changes: [Change]?
        var why: String?
        var isAgain = false
        try reader.object { name, value in
            switch name {
            case "changes": changes = try value.values(limit: 10_000)
            case "why": why = try value.message()
            case "again": isAgain = try value.bool()
            default: break
            }
        }
        self.init(changes: try required(changes, "changes"), why: why, isAgain: isAgain)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("changes", changes)
            writer.member("why", ifPresent: why)
            if isAgain { writer.member("again", true) }
        }
    }
}

extension ApplyRequest.Change: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var app: AppID?
        var layer: Layer?
        var aspect: Aspect?
        var value: Range<Int>?
        var basedOn: Int64?
        try reader.object { name, member in
            switch name {
            case "app": app = try member.value()
            case "target": layer = try member.value()
            case "aspect": aspect = try member.value()
            case "value": value = try member.extent()
            case "basedOn": basedOn = try member.integer()
            default: break
            }
        }
        let knownAspect = try required(aspect, "aspect")
        let desired = try reader.read(try required(value, "value")) { value in
            value.refusesUnknown = true
            return try DesiredValue(of: knownAspect, from: &value)
        }
        // On the way to a device an unknown value counts as unauthorized, and an unknown member for nothing; an operator is
        // told of them instead.
        if let problem = desired.problems.sorted(by: { $0.key < $1.key }).first {
            throw FleetProtocolError(.value, problem.value, at: "value")
        }
        self.init(
            app: try required(app, "app"), layer: try required(layer, "target"), aspect: knownAspect, value: desired,
            basedOn: basedOn)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("target", layer)
            writer.member("aspect", aspect)
            writer.member("value", value)
            writer.member("basedOn", ifPresent: basedOn)
        }
    }
}

/// What became of one document of an `apply` or `delete`.
package struct ChangeResult: Hashable, Sendable {
    package let app: AppID
    package let layer: Layer
    package let aspect: Aspect
    package let revision: Int64
    /// False when it was so already: nothing was published.
    package let isChanged: Bool

    package init(app: AppID, layer: Layer, aspect: Aspect, revision: Int64, isChanged: Bool) {
        self.app = app
        self.layer = layer
        self.aspect = aspect
        self.revision = revision
        self.isChanged = isChanged
    }
}

extension ChangeResult: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var app: AppID?
        var layer: Layer?
        var aspect: Aspect?
        var revision: Int64?
        var isChanged: Bool?
        try reader.object { name, value in
            switch name {
            case "app": app = try value.value()
            case "target": layer = try value.value()
            case "aspect": aspect = try value.value()
            case "revision": revision = try value.integer()
            case "changed": isChanged = try value.bool()
            default: break
            }
        }
        self.init(
            app: try required(app, "app"), layer: try required(layer, "target"),
            aspect: try required(aspect, "aspect"), revision: try required(revision, "revision"),
            isChanged: try required(isChanged, "changed"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("target", layer)
            writer.member("aspect", aspect)
            writer.member("revision", revision)
            writer.member("changed", isChanged)
        }
    }
}

/// The answer to `apply` and `delete`: `{"results":[…],"warnings":[…],"epoch":1}`.
package struct ChangeResponse: Hashable, Sendable, JSONCodable {
    package let results: [ChangeResult]
    package let warnings: [String]
    /// In which the change was made: a restore behind it may undo it. Nil from a controller of before it was told.
    package let epoch: Int64?

    package init(results: [ChangeResult], warnings: [String], epoch: Int64? = nil) {
        self.results = results
        self.warnings = warnings
        self.epoch = epoch
    }

    package init(from reader: inout JSONReader) throws {
        var results: [ChangeResult]?
        var warnings: [String] = []
        var epoch: Int64?
        try reader.object { name, value in
            switch name {
            case "results": results = try value.values(limit: 100_000)
            case "warnings": try value.array { warnings.append(try $0.message(limit: 2_000)) }
            case "epoch": epoch = try value.integer(in: 1...JSONValue.largestInteger)
            default: break
            }
        }
        self.init(results: try required(results, "results"), warnings: warnings, epoch: epoch)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("results", results)
            writer.member("warnings", warnings)
            writer.member("epoch", ifPresent: epoch)
        }
    }
}

/// Names documents: one aspect of an app on a layer, or all aspects that there are.
package struct DocumentSelector: Hashable, Sendable, JSONCodable {
    package let app: AppID
    package let layer: Layer
    package let aspect: Aspect?
    /// With `progress`: at which revision the document stood for whoever asks. A change behind that has superseded it.
    package let revision: Int64?

    package init(app: AppID, layer: Layer, aspect: Aspect?, revision: Int64? = nil) {
        self.app = app
        self.layer = layer
        self.aspect = aspect
        self.revision = revision
    }

    package init(from reader: inout JSONReader) throws {
        var app: AppID?
        var layer: Layer?
        var aspect: Aspect?
        var revision: Int64?
        try reader.object { name, value in
            switch name {
            case "app": app = try value.value()
            case "target": layer = try value.value()
            case "aspect": aspect = try value.value()
            case "revision": revision = try value.integer()
            default: break
            }
        }
        self.init(
            app: try required(app, "app"), layer: try required(layer, "target"), aspect: aspect, revision: revision)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("app", app)
            writer.member("target", layer)
            writer.member("aspect", ifPresent: aspect)
            writer.member("revision", ifPresent: revision)
        }
    }
}

/// The body of `delete` and of `progress`: `{"documents":[…],"why":"…"}`.
package struct SelectionRequest: Hashable, Sendable, JSONCodable {
    package let documents: [DocumentSelector]
    package let why: String?
    /// With `progress`: whether some of those that are still to come are named, and not only counted.
    package let names: Bool

    package init(documents: [DocumentSelector], why: String? = nil, names: Bool = true) {
        self.documents = documents
        self.why = why
        self.names = names
    }

    package init(from reader: inout JSONReader) throws {
        var documents: [DocumentSelector]?
        var why: String?
        var names = true
        try reader.object { name, value in
            switch name {
            case "documents": documents = try value.values(limit: 10_000)
            case "why": why = try value.message()
            case "names": names = try value.bool()
            default: break
            }
        }
        self.init(documents: try required(documents, "documents"), why: why, names: names)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("documents", documents)
            writer.member("why", ifPresent: why)
            if !names { writer.member("names", false) }
        }
    }
}

/// The body of `enroll` and `device-remove`.
package struct DeviceRequest: Hashable, Sendable, JSONCodable {
    package let device: DeviceID
    /// With `device-remove`: what the home had given out last when it took the device's password away. A device that was
    /// enrolled since is left alone. With `enroll`: what the home is about to give out.
    package let incarnation: Int64?
    /// With `device-remove`: for the history.
    package let why: String?

    package init(device: DeviceID, incarnation: Int64? = nil, why: String? = nil) {
        self.device = device
        self.incarnation = incarnation
        self.why = why
    }

    package init(from reader: inout JSONReader) throws {
        var device: DeviceID?
        var incarnation: Int64?
        var why: String?
        try reader.object { name, value in
            switch name {
            case "device": device = try value.value()
            case "incarnation": incarnation = try value.integer(in: 1...JSONValue.largestInteger)
            case "why": why = try value.message()
            default: break
            }
        }
        self.init(device: try required(device, "device"), incarnation: incarnation, why: why)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("device", device)
            writer.member("incarnation", ifPresent: incarnation)
            writer.member("why", ifPresent: why)
        }
    }
}

/// The body of `group-set`; what is absent stays as it is. `devices` replaces the members, `add` and `remove` change them.
/// Of `group-delete` too, which has no members and no priority.
package struct GroupRequest: Hashable, Sendable, JSONCodable {
    package let group: GroupID
    package let priority: Int64?
    package let devices: [DeviceID]?
    package let add: [DeviceID]
    package let remove: [DeviceID]
    package let why: String?

    package init(
        group: GroupID, priority: Int64? = nil, devices: [DeviceID]? = nil, add: [DeviceID] = [],
        remove: [DeviceID] = [], why: String? = nil
    ) {
        self.group = group
        self.priority = priority
        self.devices = devices
        self.add = add
        self.remove = remove
        self.why = why
    }

    package init(from reader: inout JSONReader) throws {
        var group: GroupID?
        var priority: Int64?
        var devices: [DeviceID]?
        var add: [DeviceID] = []
        var remove: [DeviceID] = []
        var why: String?
        try reader.object { name, value in
            switch name {
            case "group": group = try value.value()
            case "priority": priority = try value.integer(in: GroupMeta.priorities)
            case "devices": devices = try value.values(limit: 20_000)
            case "add": add = try value.values(limit: 20_000)
            case "remove": remove = try value.values(limit: 20_000)
            case "why": why = try value.message()
            default: break
            }
        }
        self.init(
            group: try required(group, "group"), priority: priority, devices: devices, add: add, remove: remove,
            why: why)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("group", group)
            writer.member("priority", ifPresent: priority)
            if let devices { writer.member("devices", devices) }
            if !add.isEmpty { writer.member("add", add) }
            if !remove.isEmpty { writer.member("remove", remove) }
            writer.member("why", ifPresent: why)
        }
    }
}
