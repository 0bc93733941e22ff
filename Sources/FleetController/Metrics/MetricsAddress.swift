/// Where the controller's figures are served: loopback, since they go over the wire as they are.
package struct MetricsAddress: Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int

    /// - Parameter text: `9464`, `127.0.0.1:9464` or `[::1]:9464`; port 0 is any that is free.
    package init(_ text: String) throws {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let isPortAlone = parts.count == 1
        guard let port = parts.last.flatMap({ UInt16($0) }), let host = Self.host(isPortAlone ? [] : parts.dropLast())
        else {
            throw FleetControllerError(
                .unusable,
                "'\(text)' is no place for metrics: expected a port, or an address of this machine alone and a port,"
                    + " as in 9464, 127.0.0.1:9464 or [::1]:9464. For other machines, put a server with TLS before it")
        }
        self.init(host: host, port: Int(port))
    }

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    package var description: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    private static func host(_ parts: ArraySlice<Substring>) -> String? {
        switch parts.joined(separator: ":") {
        case "", "localhost": "127.0.0.1"
        case "[::1]": "::1"
        case let host where isLoopback(host): host
        default: nil
        }
    }

    /// 127.0.0.0/8, in its four numbers.
    private static func isLoopback(_ host: String) -> Bool {
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.first == 127 && !numbers.contains(nil)
    }
}
