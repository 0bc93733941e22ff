package import FleetProtocol

/// The time at one moment, as the core is told it with each event.
package struct Now: Hashable, Sendable {
    /// The wall clock, which anybody may set.
    package var wall: Timestamp
    /// Milliseconds since this machine booted, counting suspension (`CLOCK_BOOTTIME`).
    package var uptime: Int64
    /// Which boot of the machine it is (`/proc/sys/kernel/random/boot_id`).
    package var bootID: String

    package init(wall: Timestamp, uptime: Int64, bootID: String) {
        self.wall = wall
        self.uptime = uptime
        self.bootID = bootID
    }
}

/// Time that passed while the device was running, summed over its boots: nobody can set it, and it never goes back.
///
/// What passed between the last saving and a crash or power-off is not counted, so it runs slow rather than fast.
package struct RunningTime: Hashable, Sendable {
    /// Milliseconds up to the last observation.
    package var total: Int64 = 0
    var lastUptime: Int64 = 0
    var bootID = ""

    package init() {}

    package mutating func observe(_ now: Now) {
        if now.bootID == bootID {
            total += max(0, now.uptime - lastUptime)
        } else {
            if !bootID.isEmpty { total += max(0, now.uptime) }  // Since the new boot; what was before it is not known.
            bootID = now.bootID
        }
        lastUptime = now.uptime
    }
}

/// When the device was last in contact with its controller.
package struct Contact: Hashable, Sendable {
    /// By the running time, in milliseconds.
    package var running: Int64
    package var wall: Timestamp
}
