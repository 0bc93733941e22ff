import CMosquittoBroker

/// The broker's own log.
enum BrokerLog {
    static func write(_ text: String, _ level: CInt) { fleetbus_broker_log(level, "fleetbus guard: \(text)") }
}
