import FleetHome
import FleetProtocol
import Logging
import Mosquitto

/// Does what the core has decided, in its order.
struct Performer {
    private let client: MQTTClient
    private let engine: ControllerEngine
    private let lock: HomeLock
    private let alarm: Alarm
    private let logger: Logger
    /// Publishes that may be without an answer at a time.
    private static let window = 500

    init(_ client: MQTTClient, _ engine: ControllerEngine, _ lock: HomeLock, _ alarm: Alarm, _ logger: Logger) {
        self.client = client
        self.engine = engine
        self.lock = lock
        self.alarm = alarm
        self.logger = logger
    }

    /// Ends by throwing when the core stops, or is refused what it cannot be without.
    func run(_ outbox: Outbox) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            var unanswered = 0
            try await outbox.drain { entries in
                for entry in entries {
                    switch entry.effect {
                    case .publish(let topic, let payload, let retain):
                        if unanswered >= Self.window {
                            try await group.next()
                            unanswered -= 1
                        }
                        guard isCurrent(entry) else { continue }
                        // At once: the request is made before this returns, so the order is kept.
                        group.addImmediateTask {
                            await publish(payload, to: topic, retain: retain, on: entry.connection)
                        }
                        unanswered += 1
                    case .subscribe(let filters):
                        if isCurrent(entry) { try await subscribe(filters) }
                    case .reconnect:
                        if isCurrent(entry) { client.reconnect() }
                    case .readEnrolments: await readEnrolments()
                    case .wake(let time): alarm.set(for: time, now: .now)
                    case .note(let position): lock.noteDatabase(at: position.description)
                    case .log(let line): log(line)
                    case .stop(let reason): throw FleetControllerError(.stopped, reason)
                    }
                }
            }
        }
    }

    /// What was decided for a connection that is gone would only confuse the next one.
    private func isCurrent(_ entry: Outbox.Entry) -> Bool { client.state == .connected(number: entry.connection) }

    private func publish(_ payload: [UInt8], to topic: String, retain: Bool, on connection: Int) async {
        do {
            let reason = try await client.publish(payload, to: topic, retain: retain)
            if reason.isError {
                logger.error("the broker refuses a message", metadata: ["topic": "\(topic)", "reason": "\(reason)"])
                await engine.refused(on: connection)
            }
        } catch let error as MosquittoError where Self.isConnectionGone(error) {
            // The next connection repairs what was meant to be there.
        } catch is CancellationError {
            // The service ends: the next run repairs, and answers what is asked again.
        } catch {
            logger.error("a message could not be published", metadata: ["topic": "\(topic)", "reason": "\(error)"])
        }
    }

    private func subscribe(_ filters: [TopicFilter]) async throws {
        do {
            try await client.subscribe(to: filters.map { $0.text(in: engine.fleet) })
        } catch let error as MosquittoError where error.code == .subscriptionRefused {
            throw FleetControllerError(.stopped, "the broker does not let @controller read: \(error.message)")
        } catch let error as MosquittoError where Self.isConnectionGone(error) {
            // The next connection subscribes anew.
        }
    }

    private static func isConnectionGone(_ error: MosquittoError) -> Bool {
        [.notConnected, .connectionLost, .closed].contains(error.code)
    }

    private func readEnrolments() async {
        do {
            try await engine.readEnrolments()
        } catch {
            logger.warning("the enrolments in the home cannot be read", metadata: ["reason": "\(error)"])
        }
    }

    private func log(_ line: ControllerCore.LogLine) {
        let metadata = Logger.Metadata(uniqueKeysWithValues: line.details.map { ($0, "\($1)") })
        logger.log(level: line.level.swiftLog, "\(line.message)", metadata: metadata)
    }
}

extension ControllerCore.LogLine.Level {
    fileprivate var swiftLog: Logger.Level {
        switch self {
        case .info: .info
        case .notice: .notice
        case .warning: .warning
        case .error: .error
        }
    }
}
