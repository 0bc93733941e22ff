import Glibc

/// Why a key or a secure file cannot be used.
public struct SecureFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. The numbers are the API's.
    public enum Code: Int32, Sendable {
        /// Secure services are unavailable: the app is not ready or not authorized, has been retired, or an administrator
        /// has locked them.
        case noKeys = 1
        /// The file would be longer than a secure file can be.
        case fileTooBig = 2
        /// A length or an offset is below zero.
        case negativeFileLength = 3
        /// The memory for it cannot be had.
        case lowMemory = 4
        /// The file is no secure file, was made with another key, or has been changed by something else.
        case badKeyOrCorruptData = 5
        /// An argument cannot be used.
        case invalidArgument = 6
        /// Not a regular file: a folder, a pipe, a device, a socket.
        case regularFileOnly = 7
        /// What the system has refused; ``SecureFileError/errno`` says why.
        case `internal` = 444
    }

    /// The kind of failure.
    public let code: Code
    /// The system's number for it, as `errno` has it: `EACCES` of noKeys, `EIO` of badKeyOrCorruptData.
    public let errno: Int32
    /// For people: what was tried, and on what.
    public let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
        errno = code.errno
    }

    /// A call of the system has failed, just now.
    package init(failed what: String) {
        errno = Glibc.errno
        code = errno == ENOMEM ? .lowMemory : errno == EFBIG ? .fileTooBig : .internal
        message = "cannot \(what): \(String(cString: strerror(errno)))"
    }

    /// `noKeys: no key can be had: the app is not authorized`
    public var description: String { "\(code): \(message)" }
}

extension SecureFileError.Code {
    fileprivate var errno: Int32 {
        switch self {
        case .noKeys: EACCES
        case .fileTooBig: EFBIG
        case .negativeFileLength, .invalidArgument: EINVAL
        case .lowMemory: ENOMEM
        case .badKeyOrCorruptData, .internal: EIO
        case .regularFileOnly: ENOTSUP
        }
    }
}
