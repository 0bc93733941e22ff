package import FleetProtocol

/// What a simulated fleet has seen and done so far.
package struct LoadCounters: Sendable {
    package var devices = 0
    package var connected = 0
    /// Apps that have had their first ready.
    package var ready = 0
    /// Desired documents that arrived, as news or as retained state.
    package var received = 0
    /// Statuses with an app's answer that the broker has taken over.
    package var acknowledged = 0
    /// All statuses that the broker has taken over.
    package var statuses = 0
    /// Refused publishes and subscriptions, refused documents, connections that failed or were lost.
    package var errors = 0
    /// News that a device had before on the same connection.
    package var duplicated = 0
    /// News that came behind younger news.
    package var reordered = 0
    /// From the arrival of a document to the broker's acknowledgement of the status with the app's answer.
    package var latency = Histogram()
    /// The newest reason for an error.
    package var lastError: String?

    var line: String {
        "connected \(connected)/\(devices)  ready \(ready)  received \(received)  acknowledged \(acknowledged)"
            + "  errors \(errors)  p50 \(latency.milliseconds(at: 0.5).rounded(to: 2)) ms"
            + "  p99 \(latency.milliseconds(at: 0.99).rounded(to: 2)) ms"
    }

    package var value: JSONValue {
        .object([
            "devices": .integer(Int64(devices)), "connected": .integer(Int64(connected)),
            "ready": .integer(Int64(ready)), "received": .integer(Int64(received)),
            "acknowledged": .integer(Int64(acknowledged)), "statuses": .integer(Int64(statuses)),
            "errors": .integer(Int64(errors)), "lastError": lastError.map(JSONValue.string),
            "duplicated": .integer(Int64(duplicated)), "reordered": .integer(Int64(reordered)),
            "latencyMs": .object([
                "p50": .double(latency.milliseconds(at: 0.5).rounded(to: 3)),
                "p99": .double(latency.milliseconds(at: 0.99).rounded(to: 3)),
                "max": .double(latency.milliseconds(at: 1).rounded(to: 3)),
            ]),
        ])
    }
}

extension Double {
    func rounded(to digits: Int) -> Double {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        return (self * scale).rounded() / scale
    }
}
