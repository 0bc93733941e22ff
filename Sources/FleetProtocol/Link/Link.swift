/// What passes between an app and the agent of its device: one JSON object a line, over a Unix domain socket.
///
/// The app speaks first (`register`); the agent answers `welcome` or `refused`. A line of more than
/// ``Link/maximumLine`` bytes ends the connection. Where a frame says `"descriptors":N`, N file descriptors come with its
/// bytes (SCM_RIGHTS). The whole is specified in `schemas/link/`.
package enum Link {
    /// The version of the link that this build speaks.
    package static let version: Int64 = 1
    /// The longest line, in bytes, without its newline.
    package static let maximumLine = 256 * 1_024
    /// The longest path of a Unix domain socket on Linux, in bytes.
    package static let maximumPath = 107
    package static let maximumText = 4_000
}
