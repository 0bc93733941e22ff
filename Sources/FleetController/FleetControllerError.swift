/// Why the controller cannot start, or cannot go on: what was tried, on what, and what to do about it.
package struct FleetControllerError: Error, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        enum Raw { case busy, corrupt, newer, unusable, otherFleet, home, stopped }
        let raw: Raw
        /// Another process holds the database.
        package static let busy = Code(raw: .busy)
        /// The file is no SQLite database, or a damaged one.
        package static let corrupt = Code(raw: .corrupt)
        /// Written by a newer version of this program.
        package static let newer = Code(raw: .newer)
        /// The file cannot be opened, read or written: permissions, a full disk.
        package static let unusable = Code(raw: .unusable)
        /// The database belongs to another fleet.
        package static let otherFleet = Code(raw: .otherFleet)
        /// A file of the fleet's home is missing or wrong.
        package static let home = Code(raw: .home)
        /// Going on would do harm; the message says what has to be decided.
        package static let stopped = Code(raw: .stopped)
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
