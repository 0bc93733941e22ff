internal import CMosquitto

/// libmosquitto's one-time set-up, done at its first use and never undone.
enum Library {
    static let status: Int32 = mosquitto_lib_init()
}

extension EventLoop {
    /// The version of libmosquitto that runs, such as `2.0.11`.
    public static var libraryVersion: String {
        var (major, minor, revision): (Int32, Int32, Int32) = (0, 0, 0)
        _ = mosquitto_lib_version(&major, &minor, &revision)
        return "\(major).\(minor).\(revision)"
    }
}
