package import FleetProtocol
import Glibc

extension FleetHome {
    /// A device that is to be enrolled, and the folder that its agent will run on.
    package struct Enrolment: Hashable, Sendable {
        package let device: DeviceID
        package let folder: String
        /// What the controller says of this device; nil for what holds for all.
        package let floors: Floors?

        package init(device: DeviceID, folder: String, floors: Floors? = nil) {
            self.device = device
            self.folder = folder
            self.floors = floors
        }
    }

    /// What is known of a device, also of a removed one; nil when it was never enrolled.
    package func record(of device: DeviceID) throws -> DeviceRecord? {
        let name = "\(device).json"
        guard deviceFolder.exists(name) else { return nil }
        let record: DeviceRecord = try deviceFolder.value(in: name)
        guard record.device == device else {
            throw FleetHomeError(.malformed, "\(deviceFolder.path(of: name)): device: this is another device's record")
        }
        return record
    }

    /// The incarnation that a device was last enrolled with; nil for a device that is not enrolled.
    package func incarnation(of device: DeviceID) throws -> Int64? {
        guard let record = try record(of: device), record.isEnrolled else { return nil }
        return record.incarnation
    }

    /// The enrolled devices, by id.
    package func devices() throws -> [DeviceRecord] {
        try deviceFolder.names().compactMap { name in
            guard name.hasSuffix(".json"), let id = DeviceID(name.dropLast(5)), let record = try record(of: id),
                record.isEnrolled
            else { return nil }
            return record
        }
    }

    private static func version(of trust: SignedDocument) throws -> Int64 {
        try TrustDocument(json: trust.payload, limit: SignedDocument.maximumSize).version
    }

    /// Enrols devices, or enrols them again: each gets the next incarnation, or a later one that its floors name, a new
    /// password, and a folder that an agent can be started on. The broker is told once, behind all of them.
    ///
    /// What `floors` and the enrolments know may be of some time ago: a trust document that is newer here counts.
    @discardableResult
    package func enroll(_ enrolments: [Enrolment], floors: Floors) throws -> BrokerReload {
        let root = try rootKey().publicKey
        let authority = try brokerAuthority()
        return try changing {
            try checkBroker()
            let trust = try trust()
            let version = try Self.version(of: trust)
            func newest(_ floors: Floors) throws -> Floors {
                guard try version > Self.version(of: floors.trust) else { return floors }
                var floors = floors
                floors.trust = trust
                return floors
            }
            let shared = try newest(floors)
            // The folders first: if one cannot be made, the devices that are there keep their passwords.
            for enrolment in enrolments {
                try Self.makeFolder(for: enrolment)
                Folder(enrolment.folder).removeLeftovers()
            }
            var fresh: [Credentials] = []
            var files = FileBatch()
            for enrolment in enrolments {
                let floors = try enrolment.floors.map(newest) ?? shared
                let next = (try record(of: enrolment.device)?.incarnation ?? 0) + 1
                let record = DeviceRecord(
                    device: enrolment.device, incarnation: max(next, floors.incarnation), enrolledAt: .now,
                    removedAt: nil)
                try files.write(record, to: "\(enrolment.device).json", in: deviceFolder)
                let credentials = Credentials.random(for: .device(enrolment.device))
                let folder = Folder(enrolment.folder)
                try files.write(credentials, to: "credentials.json", in: folder)
                if let authority { try files.write(authority, to: Self.authorityName, in: folder, mode: 0o644) }
                let configuration = AgentConfiguration(
                    context: context, record: record, rootKey: root, floors: floors)
                try files.write(configuration, to: "agent.json", in: folder)
                fresh.append(credentials)
            }
            try files.commit()
            do {
                return try updateBroker { passwords in
                    for credentials in fresh { try passwords.set(credentials) }
                }
            } catch let error as FleetHomeError {
                throw FleetHomeError(
                    error.code, "the devices have new passwords, which the broker does not know: \(error)",
                    remedy: "mend that, and enrol them again")
            }
        }
    }

    /// The file by which devices and people know the broker; nil without TLS.
    func brokerAuthority() throws -> [UInt8]? {
        try context.tls.map { tls in
            let parts = tls.authority.split(separator: "/")
            return try Folder("/" + parts.dropLast().joined(separator: "/"))
                .read(String(parts.last ?? ""), limit: 1 << 20, remedy: "it is the broker's CA, as fleet.json names it")
        }
    }

    /// Takes devices' passwords away, and with them their connections; then notes that they are removed. Whatever ends it
    /// half-way, it can be repeated.
    ///
    /// - Returns: The incarnations that they were last enrolled with; nothing of those that this folder has no record of.
    @discardableResult
    package func removeDevices(_ devices: [DeviceID]) throws -> (
        incarnations: [DeviceID: Int64], reload: BrokerReload
    ) {
        try changing {
            let records = try devices.compactMap(record(of:))
            let reload = try updateBroker { broker in
                for device in devices { broker.remove(.device(device)) }
            }
            for record in records where record.isEnrolled {
                try deviceFolder.write(
                    DeviceRecord(
                        device: record.device, incarnation: record.incarnation, enrolledAt: record.enrolledAt,
                        removedAt: .now),
                    to: "\(record.device).json")
            }
            return (Dictionary(uniqueKeysWithValues: records.map { ($0.device, $0.incarnation) }), reload)
        }
    }

    /// Makes the folders of devices that an operator is to enrol. What would keep them from being enrolled is said here,
    /// before anybody has heard of them.
    package func prepare(_ enrolments: [Enrolment]) throws {
        for folder in [deviceFolder, brokerFolder] { try folder.checkWritable() }
        try checkBroker()
        for enrolment in enrolments {
            let folder = Folder(enrolment.folder)
            guard !folder.isInside(self.folder) else {
                throw FleetHomeError(
                    .exists, "\(folder.path) is inside the fleet's folder",
                    remedy: "choose a folder elsewhere: it goes to the device, and the fleet's folder to nobody")
            }
            guard !self.folder.isInside(folder) else {
                throw FleetHomeError(
                    .exists, "the fleet's folder is inside \(folder.path)",
                    remedy: "choose a folder of the device's own: nobody but its owner may enter it")
            }
            for above in sequence(first: folder, next: \.parent).dropFirst() {
                guard let other = Self.device(of: above) else { continue }
                throw FleetHomeError(
                    .exists, "\(folder.path) is inside the folder of device \(other)",
                    remedy: "choose a folder of the device's own")
            }
            try Self.makeFolder(for: enrolment)
        }
    }

    /// Takes back what ``prepare(_:)`` has made for devices that are not enrolled after all, where nothing else is in it.
    package func takeBack(_ enrolments: [Enrolment]) {
        for folder in enrolments.map({ Folder($0.folder) }) where !folder.exists("agent.json") {
            for path in [folder.folder("state").path, folder.folder("apps.d").path, folder.path] { rmdir(path) }
        }
    }

    private static func makeFolder(for enrolment: Enrolment) throws {
        let folder = Folder(enrolment.folder)
        // A folder of someone else could lead these writes astray, and its owner could not read what they leave.
        try checkOwner(of: folder, remedy: "enrol into a folder of your own, and hand that over")
        if let other = device(of: folder), other != enrolment.device {
            throw FleetHomeError(
                .exists, "\(folder.path) is the folder of device \(other)",
                remedy: "choose another for \(enrolment.device), or remove this one if \(other) is gone")
        }
        // Nobody but its owner may enter it from then on.
        if !folder.exists("agent.json"), let other = try folder.names(isHiddenToo: true).first(where: { !isOwn($0) }) {
            throw FleetHomeError(
                .exists, "\(folder.path) is no device's folder: \(other) is in it",
                remedy: "choose a folder that is empty, or not there yet")
        }
        try folder.make()
        try folder.checkWritable()
        try folder.folder("state").make()
        try folder.folder("apps.d").make(mode: 0o755)
    }

    /// Whether an enrolment makes something of this name in a device's folder, or leaves it there when it is cut short.
    private static func isOwn(_ name: String) -> Bool {
        let files = ["agent.json", "ca.pem", "credentials.json"]
        return ["apps.d", "state"].contains(name) || files.contains { name == $0 || name.hasPrefix(".\($0).") }
    }

    /// The device that a folder was made for; nil when it says none, or cannot be read: enrolling is what mends it.
    private static func device(of folder: Folder) -> DeviceID? {
        guard let bytes = try? folder.read("agent.json", limit: 16 << 20),
            let agent = try? JSONValue(json: bytes, limit: bytes.count)
        else { return nil }
        return agent["device"]?.stringValue.flatMap { DeviceID($0) }
    }
}
