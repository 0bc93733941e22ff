import Glibc

/// The process's limit of open files, one for each connection.
enum FileLimit {
    /// Sees to it that `connections` can be open at once, or says what would help.
    static func ensure(connections: Int) throws {
        let needed = rlim_t(connections + 128)
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        guard limit.rlim_cur < needed else { return }
        let before = limit
        limit.rlim_cur = needed
        limit.rlim_max = max(limit.rlim_max, needed)  // Only the superuser may.
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 else { return }
        throw LoadError(
            """
            \(connections) connections need \(needed) open files, and this process may have \(before.rlim_cur), at most \
            \(before.rlim_max).
            Raise it with: sudo prlimit --pid $$ --nofile=\(needed):\(needed)   (or LimitNOFILE=\(needed) in a systemd \
            unit), for the broker too;
            or share the devices among several processes with --first, or take fewer --devices.
            """)
    }

    /// Outgoing ports that one source address has, with a reserve.
    static let connectionsPerAddress = 28_000

    /// Where the connection with this index comes from: a broker's port on loopback can be reached from all of 127/8.
    static func sourceAddress(of index: Int, to host: String) -> String? {
        guard index >= connectionsPerAddress, host.hasPrefix("127.") else { return nil }
        let block = index / connectionsPerAddress + 1
        return "127.0.\(block >> 8).\(block & 0xFF)"
    }
}

/// Why a load could not be run, and what helps.
package struct LoadError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
