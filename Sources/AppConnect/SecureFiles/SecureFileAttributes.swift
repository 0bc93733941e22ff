public import Glibc

/// What there is to say of a secure file beside its content.
public struct SecureFileAttributes: Hashable, Sendable {
    /// Bytes that are in it, without what encryption adds.
    public let size: Int64
    /// Bytes of the file as the system has it.
    public let encryptedSize: Int64
    /// Who may do what with it, such as 0o600.
    public let permissions: mode_t
    /// The user whose file it is.
    public let owner: uid_t
    /// The group whose file it is.
    public let group: gid_t
    /// When it was written last, since 1970-01-01 UTC.
    public let modified: Duration

    init(_ info: stat, size: Int64) {
        self.size = size
        encryptedSize = Int64(info.st_size)
        permissions = info.st_mode & 0o7777
        owner = info.st_uid
        group = info.st_gid
        modified = .seconds(info.st_mtim.tv_sec) + .nanoseconds(info.st_mtim.tv_nsec)
    }
}
