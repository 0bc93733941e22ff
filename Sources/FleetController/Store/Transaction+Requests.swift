import FleetProtocol
import GRDB

extension FleetStore.Transaction {
    /// What was answered to a request, if it has been applied already.
    func response(to id: RandomID, of user: User) throws -> [UInt8]? {
        try row("SELECT response FROM requests WHERE user = ? AND id = ?", [user.text, id.text])
            .map { [UInt8](blob: $0[0]) }
    }

    func keep(_ response: [UInt8], to id: RandomID, of user: User, at time: Timestamp) throws {
        try run(
            "INSERT INTO requests (user, id, at, response) VALUES (?, ?, ?, ?)",
            [user.text, id.text, time.milliseconds, response.blob])
    }

    func dropResponses(before time: Timestamp) throws {
        try run("DELETE FROM requests WHERE at < ?", [time.milliseconds])
    }
}
