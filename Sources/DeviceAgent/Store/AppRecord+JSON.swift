package import FleetProtocol

/// How an app's record stands in the store: one JSON text a row.
extension AppRecord: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var id: AppID?
        var install: RandomID?
        var launch: RandomID?
        var sdk = ""
        var implements: Set<Callback> = []
        var wasReady = false
        var owesReady = false
        var nextDelivery: Int64 = 1
        var kept: Int64 = 0
        var managed = ManagedPolicy.unknown
        var authReason = AuthReason.none
        var hasKeys = false
        var latch: Latch?
        var owed: Latch?
        var wrongPasscodes: Int64 = 0
        var passcodeLock: Revision?
        var isWipeDue = false
        var records = [PolicyRecord?](repeating: nil, count: Policy.allCases.count)
        var managedTold: ManagedPolicy?
        var availabilityTold: SecureServicesAvailability?
        var managedSent: ToldValue<ManagedPolicy>.Sent?
        var availabilitySent: ToldValue<SecureServicesAvailability>.Sent?
        var clocks: [Address: LevelClock] = [:]
        try reader.object { name, value in
            switch name {
            case "id": id = try value.value()
            case "install": install = try value.value()
            case "launch": launch = try value.value()
            case "sdk": sdk = try value.string()
            case "implements":
                try value.array { if let known = Callback(rawValue: try $0.string()) { implements.insert(known) } }
            case "wasReady": wasReady = try value.bool()
            case "owesReady": owesReady = try value.bool()
            case "nextDelivery": nextDelivery = try value.integer()
            case "kept": kept = try value.integer()
            case "managed": managed = try value.value()
            case "authReason": authReason = try value.value()
            case "hasKeys": hasKeys = try value.bool()
            case "latch": latch = try value.value()
            case "owed": owed = try value.value()
            case "wrongPasscodes": wrongPasscodes = try value.integer()
            case "wipeDue": isWipeDue = try value.bool()
            case "passcodeLock": passcodeLock = (try value.value() as PasscodeLock).change
            case "policies":
                try value.object { name, value in
                    guard let policy = name.named(Policy.self) else { return }
                    records[policy.index] = try PolicyRecord(of: policy, from: &value)
                }
            case "managedTold": managedTold = try value.value()
            case "availabilityTold": availabilityTold = try value.value()
            case "managedSent": managedSent = try value.value()
            case "availabilitySent": availabilitySent = try value.value()
            case "levelClocks":
                try value.object { name, value in
                    guard let address = Address(path: name.text) else { return }
                    clocks[address] = try value.value()
                }
            default: break
            }
        }
        let registration = Registration(
            app: try required(id, "id"), install: try required(install, "install"),
            launch: try required(launch, "launch"), sdk: sdk, implements: implements)
        self.init(registration, at: Timestamp(milliseconds: 0))
        self.wasReady = wasReady
        self.owesReady = owesReady
        self.nextDelivery = nextDelivery
        self.kept = kept
        self.managed = managed
        self.authReason = authReason
        self.hasKeys = hasKeys
        if let latch { self.latch = latch } else { self.owed = owed }
        self.wrongPasscodes = wrongPasscodes
        self.passcodeLock = passcodeLock
        self.isWipeDue = isWipeDue
        policies = try Policy.allCases.map { try required(records[$0.index], "policies.\($0.rawValue)") }
        self.managedTold.told = managedTold
        self.managedTold.sent = managedSent
        self.availabilityTold.told = availabilityTold
        self.availabilityTold.sent = availabilitySent
        levelClocks = clocks
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            writer.member("install", install)
            writer.member("launch", launch)
            writer.member("sdk", sdk)
            writer.member("implements", implements.sorted().map(\.rawValue))
            writer.member("wasReady", wasReady)
            writer.member("owesReady", owesReady)
            writer.member("nextDelivery", nextDelivery)
            writer.member("kept", kept)
            writer.member("managed", managed)
            writer.member("authReason", authReason)
            writer.member("hasKeys", hasKeys)
            writer.member("latch", ifPresent: latch)
            writer.member("owed", ifPresent: owed)
            if wrongPasscodes != 0 { writer.member("wrongPasscodes", wrongPasscodes) }
            if isWipeDue { writer.member("wipeDue", true) }
            writer.member("passcodeLock", ifPresent: passcodeLock.map(PasscodeLock.init))
            writer.member("policies") { writer in
                writer.object { writer in
                    for policy in Policy.allCases { writer.member(named: policy.rawValue, policies[policy.index]) }
                }
            }
            writer.member("managedTold", ifPresent: managedTold.told)
            writer.member("managedSent", ifPresent: managedTold.sent)
            writer.member("availabilityTold", ifPresent: availabilityTold.told)
            writer.member("availabilitySent", ifPresent: availabilityTold.sent)
            writer.member("levelClocks") { writer in
                writer.object { writer in
                    for (address, clock) in levelClocks.sorted(by: { $0.key.path < $1.key.path }) {
                        writer.member(named: address.path, clock)
                    }
                }
            }
        }
    }
}

extension PolicyRecord: JSONWritable {
    init(of policy: Policy, from reader: inout JSONReader) throws {
        var value: PolicyValue?
        var source: Address?
        var received: Int64 = 0
        var problem: String?
        var applied: Int64?
        var attempt: PolicyReport.Attempt?
        var told: Told?
        var sent: Told?
        var namesAuthorized = false
        try reader.object { name, member in
            switch name {
            case "value": value = try PolicyValue(of: policy, from: &member)
            case "source": source = Address(path: try member.string())
            case "received": received = try member.integer()
            case "problem": problem = try member.string()
            case "applied": applied = try member.integer()
            case "attempt": attempt = try member.value()
            case "told": told = try Told(of: policy, from: &member)
            case "sent": sent = try Told(of: policy, from: &member)
            case "namesAuthorized": namesAuthorized = try member.bool()
            default: break
            }
        }
        self.init(default: policy, at: Timestamp(milliseconds: 0))
        self.value = try required(value, "value")
        decidedBy = source.map(DocumentSource.init)
        self.received = received
        self.problem = problem
        self.applied = applied
        self.attempt = try required(attempt, "attempt")
        self.told = told
        self.sent = sent
        self.namesAuthorized = namesAuthorized
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("value", value)
            writer.member("source", ifPresent: source?.path)
            writer.member("received", received)
            writer.member("problem", ifPresent: problem)
            writer.member("applied", ifPresent: applied)
            writer.member("attempt", attempt)
            writer.member("told", ifPresent: told)
            writer.member("sent", ifPresent: sent)
            if namesAuthorized { writer.member("namesAuthorized", true) }
        }
    }
}

extension PolicyRecord.Told: JSONWritable {
    init(of policy: Policy, from reader: inout JSONReader) throws {
        var number: Int64?
        var revision: Int64?
        var value: PolicyValue?
        var isSubstitute = false
        var outcome = Outcome.delivered
        var message: String?
        var reason: AuthReason?
        try reader.object { name, member in
            switch name {
            case "number": number = try member.integer()
            case "revision": revision = try member.integer()
            case "value": value = try PolicyValue(of: policy, from: &member)
            case "isSubstitute": isSubstitute = try member.bool()
            case "outcome": outcome = try member.value()
            case "message": message = try member.string()
            case "reason": reason = try member.value()
            default: break
            }
        }
        self.init(
            number: try required(number, "number"), revision: try required(revision, "revision"),
            value: try required(value, "value"), isSubstitute: isSubstitute, outcome: outcome, reason: reason,
            message: message)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("number", number)
            writer.member("revision", revision)
            writer.member("value", value)
            writer.member("isSubstitute", isSubstitute)
            writer.member("outcome", outcome)
            writer.member("message", ifPresent: message)
            writer.member("reason", ifPresent: reason)
        }
    }
}

extension ToldValue.Sent: JSONReadable, JSONWritable where Value: JSONReadable & JSONWritable {
    package init(from reader: inout JSONReader) throws {
        var number: Int64?
        var told: Value?
        try reader.object { name, value in
            switch name {
            case "number": number = try value.integer()
            case "value": told = try value.value()
            default: break
            }
        }
        self.init(number: try required(number, "number"), value: try required(told, "value"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("number", number)
            writer.member("value", value)
        }
    }
}

private struct PasscodeLock: JSONCodable {
    let change: Revision

    init(change: Revision) { self.change = change }

    init(from reader: inout JSONReader) throws {
        var epoch: Int64?
        var revision: Int64?
        try reader.object { name, value in
            switch name {
            case "epoch": epoch = try value.integer()
            case "revision": revision = try value.integer()
            default: break
            }
        }
        change = Revision(epoch: try required(epoch, "epoch"), number: try required(revision, "revision"))
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("epoch", change.epoch)
            writer.member("revision", change.number)
        }
    }
}

extension AppRecord.Latch: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var epoch: Int64?
        var revision: Int64?
        var reason: AuthReason?
        var message: String?
        try reader.object { name, value in
            switch name {
            case "epoch": epoch = try value.integer()
            case "revision": revision = try value.integer()
            case "reason": reason = try value.value()
            case "message": message = try value.string()
            default: break
            }
        }
        self.init(
            change: Revision(epoch: try required(epoch, "epoch"), number: try required(revision, "revision")),
            reason: try required(reason, "reason"), message: try required(message, "message"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("epoch", change.epoch)
            writer.member("revision", change.number)
            writer.member("reason", reason)
            writer.member("message", message)
        }
    }
}

extension AppRecord.LevelClock: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var epoch: Int64?
        var revision: Int64?
        var start: Int64?
        var isCodeAccepted = false
        var isOver = false
        var said: Said?
        try reader.object { name, value in
            switch name {
            case "epoch": epoch = try value.integer()
            case "revision": revision = try value.integer()
            case "start": start = try value.integer()
            case "isCodeAccepted": isCodeAccepted = try value.bool()
            case "isOver": isOver = try value.bool()
            case "said": said = try value.value()
            default: break
            }
        }
        self.init(
            change: Revision(epoch: try required(epoch, "epoch"), number: try required(revision, "revision")),
            start: try required(start, "start"), isCodeAccepted: isCodeAccepted, isOver: isOver, said: said)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("epoch", change.epoch)
            writer.member("revision", change.number)
            writer.member("start", start)
            writer.member("isCodeAccepted", isCodeAccepted)
            writer.member("isOver", isOver)
            writer.member("said", ifPresent: said)
        }
    }
}

extension AppRecord.LevelClock.Said: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var level: LogLevel?
        var end: Int64?
        var notAfter: Timestamp?
        try reader.object { name, value in
            switch name {
            case "level": level = try value.value()
            case "end": end = try value.integer()
            case "notAfter": notAfter = try value.value()
            default: break
            }
        }
        self.init(level: try required(level, "level"), end: end, notAfter: notAfter)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("level", level)
            writer.member("end", ifPresent: end)
            writer.member("notAfter", ifPresent: notAfter)
        }
    }
}
