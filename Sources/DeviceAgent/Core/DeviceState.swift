package import FleetProtocol

/// What a device was given when it was enrolled.
package struct Enrollment: Sendable {
    package var device: DeviceID
    package var fleet: FleetID
    package var fleetUUID: RandomID
    /// Rises with each enrolment of the device.
    package var incarnation: Int64
    package var rootKey: VerifyingKey
    /// The newest trust document at enrolment.
    package var trust: SignedDocument
    package var epoch: Int64
    /// Below these revisions nothing is accepted.
    package var floors: [Address: Revision]

    package init(
        device: DeviceID, fleet: FleetID, fleetUUID: RandomID, incarnation: Int64, rootKey: VerifyingKey,
        trust: SignedDocument, epoch: Int64, floors: [Address: Revision]
    ) {
        self.device = device
        self.fleet = fleet
        self.fleetUUID = fleetUUID
        self.incarnation = incarnation
        self.rootKey = rootKey
        self.trust = trust
        self.epoch = epoch
        self.floors = floors
    }
}

/// What survives a restart of the agent.
package struct DeviceState: Hashable, Sendable {
    /// Whose state it is: a state of another fleet or device would speak for it.
    package struct Owner: Hashable, Sendable {
        package var fleet: RandomID
        package var device: DeviceID
    }

    /// nil before the first start.
    package var owner: Owner?
    /// Names this start of the agent: later than all before it on this disk.
    package var boot: Int64 = 0
    /// Names this disk, and all copies of it; 0 before the first start. Random, since at first starts clocks may stand alike.
    package var disk: Int64 = 0
    /// The newest trust document's wire form, when one newer than the enrolment's has come.
    package var trust: [UInt8]?
    /// The groups whose documents count.
    package var groups: [GroupID] = []
    package var running = RunningTime()
    package var contact: Contact?
    /// The highest revision that a signed document has spoken of.
    package var highest = Revision.zero
    /// The signed forms. A core that runs keeps them in its layers instead, as ``DeviceCore/signedDocuments``.
    package var documents: [Address: [UInt8]] = [:]
    package var marks: [Address: DocumentMark] = [:]
    package var apps = AppRecords()
    package var passcode = PasscodeRecord()
    /// In the order of their numbers.
    package var events: [KeptEvent] = []

    package init() {}
}
