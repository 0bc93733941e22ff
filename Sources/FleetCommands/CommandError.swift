import FleetProtocol

/// Why a command ended without doing what it was asked, and with which exit status.
struct CommandError: Error, CustomStringConvertible {
    /// The exit statuses of fleetctl. 64 (wrong usage) is argument-parser's own.
    struct Status: Hashable {
        let rawValue: Int32
        /// Refused by the controller, or wrong in itself: nothing was changed.
        static let refused = Status(rawValue: 1)
        /// Applied, but not by everyone, or not within the time given.
        static let notConverged = Status(rawValue: 3)
        /// No answer of broker or controller: the message says where a change may have been made.
        static let unreachable = Status(rawValue: 4)
        /// Done, but the output could not be written (EX_IOERR).
        static let unwritten = Status(rawValue: 74)
        /// Applied, and then interrupted while it waited (as shells say it of SIGINT).
        static let interrupted = Status(rawValue: 130)
    }

    let status: Status
    let description: String
    /// What kind of refusal it was, where the controller has refused.
    let refusal: Response.Failure.Code?

    init(_ status: Status, _ message: String, refusal: Response.Failure.Code? = nil) {
        self.status = status
        self.refusal = refusal
        description = message
    }
}
