import Glibc

/// The process's limit of open files, one for each connection.
enum FileLimit {
    /// Descriptors beside those of the connections.
    private static let others = 128

    /// What `connections` need, for people to read before anything begins.
    static func needs(of connections: Int, from first: Int, to host: String) -> String {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let addresses = Set((first - 1..<first - 1 + connections).map { sourceAddress(of: $0, to: host) ?? host }).count
        return "\(connections) connections from \(addresses) source address\(addresses == 1 ? "" : "es") need"
            + " \(connections + others) open files here (allowed: \(limit.rlim_max)) and as many at the broker"
    }

    /// Throws when the broker on this host, as far as it can be seen, may not have so many connections.
    static func check(broker pid: pid_t, for connections: Int) throws {
        guard let line = ProcessUsage.lines("/proc/\(pid)/limits").first(where: { $0.hasPrefix("Max open files") }),
            let limit = line.split(separator: " ").compactMap({ Int($0) }).first, limit < connections + others
        else { return }
        throw LoadError(
            """
            The broker (process \(pid)) may have \(limit) open files, and \(connections) connections need \
            \(connections + others).
            Raise it with: sudo prlimit --pid \(pid) --nofile=\(connections + others):\(connections + others)
            or for good with LimitNOFILE= in its systemd unit; or take fewer --devices.
            """)
    }

    /// Sees to it that `connections` can be open at once, or says what would help.
    static func ensure(connections: Int) throws {
        let needed = rlim_t(connections + others)
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
