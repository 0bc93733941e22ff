import FleetProtocol
import Glibc

extension Now {
    private static let bootID: String = {
        let bytes = (try? Files.read("/proc/sys/kernel/random/boot_id", limit: 256)) ?? []
        return String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    }()

    /// This machine's clocks.
    package static var system: Now {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Now(
            wall: .now, uptime: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000, bootID: bootID)
    }
}
