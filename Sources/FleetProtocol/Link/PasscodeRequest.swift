/// What a person at the device asks of its passcode: not an app, but a program of the agent's own user.
package enum PasscodeRequest: Hashable, Sendable {
    /// Unlock the apps that ask for the passcode.
    case enter(String)
    /// Set the device's passcode, or change it: then `current` is the one that it has.
    case set(new: String, current: String?)
    /// Lock the apps that ask for the passcode until it is entered again.
    case lock

    /// Of a passcode, in bytes of UTF-8.
    package static let maximumLength = 256
}

/// The agent's answer to a ``PasscodeRequest``.
package struct PasscodeResult: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Hashable, Sendable {
        case done
        case wrong
        /// Entries are slowed down after wrong ones: the passcode was not looked at. ``PasscodeResult/wait`` says how long.
        case tooEarly
        /// The new passcode does not meet what the policies ask of it.
        case tooWeak
        /// None has been set yet.
        case notSet
        /// One has been set: the present one must be given with the new one.
        case alreadySet
        /// No app of this device asks for a passcode.
        case notAsked
    }

    package var kind: Kind
    /// Seconds until an entry is looked at again.
    package var wait: Int64?
    /// So many more wrong entries until an app is locked for good, or wiped; nil where none is limited.
    package var left: Int64?
    /// What a new passcode lacks.
    package var message: String?

    package init(_ kind: Kind, wait: Int64? = nil, left: Int64? = nil, message: String? = nil) {
        self.kind = kind
        self.wait = wait
        self.left = left
        self.message = message
    }
}
