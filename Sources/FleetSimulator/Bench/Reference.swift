import FleetProtocol
import Foundation

/// The fan-out of another program with the reference floor's commands, `sim` and `drive`, on a bare broker of its own.
struct Reference {
    let program: String

    /// - Returns: Seconds from one message to all until the last of `devices` replies, the median of `rounds`.
    func fanOut(devices: Int, rounds: Int, in host: BenchHost) async throws -> Double {
        let place = try host.bareBroker(named: "reference")
        let broker = try await host.start(place)
        try FileLimit.ensure(connections: devices)
        let (port, count) = ("\(place.port)", "\(devices)")
        let text = try await host.output(
            of: program,
            [
                "drive", "-p", port, "-n", count, "-b", "\(broker.pid)", "-t", "0", "-r", "\(rounds)", "--", program,
                "sim", "-p", port, "-n", count,
            ])
        await broker.end()
        guard let start = text.firstRange(of: "RESULT ")?.upperBound else {
            throw LoadError("\(program) has printed no RESULT: \(text.suffix(300))")
        }
        let line = Array(text[start...].prefix { $0 != "\n" }.utf8)
        guard case .double(let seconds)? = try JSONValue(json: line, limit: line.count)["fanout"]?["median_round_s"]
        else { throw LoadError("\(program) has printed no fan-out") }
        return seconds
    }
}
