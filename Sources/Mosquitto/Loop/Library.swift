internal import CMosquitto

/// libmosquitto's one-time set-up, done at its first use and never undone.
enum Library {
    static let status: Int32 = mosquitto_lib_init()
}
