package import FleetProtocol

/// What a simulated fleet has seen and done so far.
package struct LoadCounters: Sendable {
    package var devices = 0
    package var connected = 0
    /// Apps that have had their first ready.
    package var ready = 0
    /// Devices all of whose apps have had it.
    package var readyDevices = 0
    /// Devices all of whose apps are ready and have a status at the broker that was sent on the present connection.
    package var reported = 0
    /// Desired documents that arrived, as news or as retained state.
    package var received = 0
    /// Statuses with an app's answer that the broker has taken over.
    package var acknowledged = 0
    /// Changes that those answer: one status may answer several.
    package var answered = 0
    /// All statuses that the broker has taken over.
    package var statuses = 0
    /// Refused publishes and subscriptions, refused documents, connections that failed or were lost.
    package var errors = 0
    /// Connections that were cut on purpose.
    package var cut = 0
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

    /// The numbers alone, for who asks often.
    package var progress: JSONValue {
        .object([
            "devices": .integer(Int64(devices)), "connected": .integer(Int64(connected)),
            "ready": .integer(Int64(ready)), "readyDevices": .integer(Int64(readyDevices)),
            "reported": .integer(Int64(reported)), "received": .integer(Int64(received)),
            "acknowledged": .integer(Int64(acknowledged)), "answered": .integer(Int64(answered)),
            "statuses": .integer(Int64(statuses)), "cut": .integer(Int64(cut)), "errors": .integer(Int64(errors)),
            "duplicated": .integer(Int64(duplicated)), "reordered": .integer(Int64(reordered)),
        ])
    }

    package var value: JSONValue {
        .object(
            (progress.memberValues ?? []) + [
                JSONValue.Member("lastError", lastError.map(JSONValue.string) ?? .null),
                JSONValue.Member("latencyMs", latency.value),
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
