/// Why a fleet's folder could not be made, opened or changed: which file, what is wrong with it, and what helps.
package struct FleetHomeError: Error, Hashable, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        enum Raw {
            case missing, exists, unreadable, unwritable, malformed, newerVersion, wrongOwner, locked, unknownUser
        }
        let raw: Raw
        /// Something that must be there is not.
        package static let missing = Code(raw: .missing)
        /// Something is there that must not be.
        package static let exists = Code(raw: .exists)
        /// A file or folder could not be read.
        package static let unreadable = Code(raw: .unreadable)
        /// A file or folder could not be written.
        package static let unwritable = Code(raw: .unwritable)
        /// A file's content is not what it must be.
        package static let malformed = Code(raw: .malformed)
        /// Written by a newer build.
        package static let newerVersion = Code(raw: .newerVersion)
        /// Belongs to another user, or lets others read what is secret.
        package static let wrongOwner = Code(raw: .wrongOwner)
        /// Another process holds it.
        package static let locked = Code(raw: .locked)
        /// No such user of the fleet, or of the system.
        package static let unknownUser = Code(raw: .unknownUser)
    }

    package let code: Code
    /// What was wrong, with the file and the member.
    package let message: String
    /// What the reader can do about it.
    package let remedy: String?

    /// The remedy for a file that only a backup can bring back.
    static let restoreFile = "restore the file from the backup of the fleet's folder"

    package init(_ code: Code, _ message: String, remedy: String? = nil) {
        self.code = code
        self.message = message
        self.remedy = remedy
    }

    package var description: String { remedy.map { "\(message); \($0)" } ?? message }
}
