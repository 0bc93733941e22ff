import FleetProtocol
import Foundation
import GRDB

extension DeviceStore {
    package func load() throws -> DeviceState {
        do {
            return try queue.read { db in
                var state = DeviceState()
                try Self.loadDevice(into: &state, db)
                for row in try Row.fetchAll(db, sql: "SELECT path, wire FROM document") {
                    let address = try Self.address(row["path"])
                    state.documents[address] = Array(row["wire"] as Data)
                }
                for row in try Row.fetchAll(db, sql: "SELECT path, epoch, revision, digest FROM mark") {
                    let address = try Self.address(row["path"])
                    state.marks[address] = DocumentMark(
                        revision: Revision(epoch: row["epoch"], number: row["revision"]),
                        digest: (row["digest"] as Data?).map { Digest(bytes: Array($0)) })
                }
                for row in try Row.fetchAll(db, sql: "SELECT id, record FROM app") {
                    let record = try AppRecord(json: Array(row["record"] as Data), limit: .max)
                    state.apps[record.id] = record
                }
                let events = try Row.fetchAll(
                    db, sql: "SELECT kind, device, app, wire FROM event ORDER BY boot, number")
                state.events = try events.map { row in
                    try KeptEvent(
                        kind: row["kind"], wire: Array(row["wire"] as Data),
                        device: DeviceID(checking: row["device"] as String), app: AppID(checking: row["app"] as String))
                }
                return state
            }
        } catch let error as DatabaseError {
            throw Self.explain(error, "read the agent's store at \(path)", path)
        } catch let error where !(error is DeviceAgentError) {
            throw Self.damaged(path, "\(error)")
        }
    }

    /// A row that is left out would be forgotten for good.
    private static func address(_ path: String) throws -> Address {
        guard let address = Address(path: path) else {
            throw FleetProtocolError(.value, "'\(Text.printable(path))' is no topic of a fleet")
        }
        return address
    }

    private static func loadDevice(into state: inout DeviceState, _ db: Database) throws {
        let row = try required(Row.fetchOne(db, sql: "SELECT * FROM device"), "device")
        if let fleet = row["fleet"] as String?, let device = row["device"] as String? {
            state.owner = DeviceState.Owner(
                fleet: try required(RandomID(fleet), "device.fleet"), device: try DeviceID(checking: device))
        }
        state.boot = row["boot"]
        state.trust = (row["trust"] as Data?).map { Array($0) }
        state.groups = try JSONList<GroupID>(json: Array((row["groups"] as String).utf8), limit: .max).elements
        state.running.total = row["running"]
        state.running.lastUptime = row["uptime"]
        state.running.bootID = row["boot_id"]
        if let running = row["contact_running"] as Int64?, let wall = row["contact_wall"] as Int64? {
            state.contact = Contact(running: running, wall: Timestamp(milliseconds: wall))
        }
        state.highest = Revision(epoch: row["highest_epoch"], number: row["highest_revision"])
        state.disk = try required(Int64.fetchOne(db, sql: "SELECT name FROM disk"), "disk")
        let passcode = try required(Row.fetchOne(db, sql: "SELECT hash, wrong FROM passcode"), "passcode")
        state.passcode = PasscodeRecord(
            hash: try (passcode["hash"] as String?).map { try CodeHash(json: Array($0.utf8), limit: .max) },
            wrong: passcode["wrong"])
    }
}

extension KeptEvent {
    var kind: String {
        switch body {
        case .event: "event"
        case .logLevel: "log-level"
        }
    }

    fileprivate init(kind: String, wire: [UInt8], device: DeviceID, app: AppID) throws {
        if kind == "log-level" {
            self.init(body: .logLevel(try LogLevelChange(wire: wire, device: device, app: app)))
        } else {
            self.init(body: .event(try AppEvent(wire: wire, device: device, app: app)))
        }
    }
}
