import Dispatch
import FleetProtocol
import Foundation
import Logging
import Mosquitto
import Synchronization

/// Performs what the core decides, on one queue: first keys, then the transaction, then everything that can be seen.
final class AgentRunner: Sendable {
    private let configuration: AgentConfiguration
    private let store: DeviceStore
    private let keystore: Keystore
    private let logger: Logger
    private let state: Mutex<State>
    private let loop: EventLoop
    private let parts = Mutex<Parts?>(nil)
    private let failed: @Sendable (any Error) -> Void
    private let displayQueue = DispatchQueue(label: "fleet-agent.display")
    /// Texts that wait for the screen, and commands of which something still runs; beyond it none is shown.
    private let displays = DisplayPlaces(16, ofOneApp: 4)
    /// Texts that no command shows stand in the log: an app could fill it. Of each app of the device, and of all that have gone.
    private let loggedTexts = Mutex<[AppID?: MinuteBudget]>([:])
    private static let textsInAMinute = 20
    private let codeQueue = DispatchQueue(label: "fleet-agent.code")
    /// Codes that wait to be compared, which takes a while; beyond it none is right.
    private let codes = Slots(16)

    private struct State {
        var core: DeviceCore
        /// The first that went wrong: nothing is done after it.
        var failure: (any Error)?
        var wake = WakeTime()
    }

    private struct Parts {
        let inbox: Inbox
        let bus: BusSession
        let links: LinkServer
    }

    init(
        _ configuration: AgentConfiguration, core: DeviceCore, store: DeviceStore, keystore: Keystore,
        loop: EventLoop, logger: Logger, failed: @escaping @Sendable (any Error) -> Void
    ) {
        self.configuration = configuration
        self.store = store
        self.keystore = keystore
        self.logger = logger
        self.loop = loop
        self.failed = failed
        state = Mutex(State(core: core))
    }

    var failure: (any Error)? { state.withLock { $0.failure } }

    func start() async throws {
        let inbox = Inbox { [self] events in handle(events) }
        let bus = try BusSession(
            configuration, will: state.withLock { $0.core.will }, loop: loop, logger: logger, handler: inbox.add)
        let links = LinkServer(
            access: LinkAccess(folder: configuration.appsFolder), logger: logger, handler: inbox.add)
        parts.withLock { $0 = Parts(inbox: inbox, bus: bus, links: links) }
        try await links.start(at: configuration.socketPath)
        inbox.add(.tick)
        bus.start()
    }

    /// Says goodbye, and waits until it has been said.
    func stop() async {
        guard let parts = parts.withLock({ $0 }) else { return }
        await parts.links.stop()
        await withCheckedContinuation { continuation in
            parts.inbox.add(.stopping)
            parts.inbox.queue.async { continuation.resume() }
        }
        await parts.bus.close(hasFailed: failure != nil)
    }

    private func handle(_ events: [DeviceEvent]) {
        guard let parts = parts.withLock({ $0 }) else { return }
        let decided: (effects: [DeviceEffect], connection: RandomID?, at: DispatchTime)? = state.withLock { state in
            guard state.failure == nil else { return nil }
            let now = Now.system
            let begin = DispatchTime.now()
            for event in events { state.core.handle(event, at: now) }
            return (state.core.takeEffects(at: now), state.core.connection, begin)
        }
        guard let decided else { return }
        do {
            for effect in decided.effects { try perform(effect, parts, decided.connection) }
        } catch {
            // What was decided is not on the disk, so nobody may hear of it: start again from what is. Apps may have lost
            // something by it, and nobody knows when an agent runs again: until then they have no keys.
            let links = state.withLock { state in
                state.failure = error
                return state.core.processes.values.map(\.link)
            }
            for link in links { parts.links.send(.keys(nil), to: link) }
            return failed(error)
        }
        var messages = 0
        for event in events {
            switch event {
            case .message: messages += 1
            case .registered(let link, _), .frame(let link, _): parts.links.handled(link)
            default: break
            }
        }
        if messages > 0 { parts.bus.handled(messages) }
        scheduleTick(parts, since: decided.at)
    }

    /// - Parameter begin: When the core looked at its clock: the disk may have taken long since.
    private func scheduleTick(_ parts: Parts, since begin: DispatchTime) {
        let (next, delay) = state.withLock { state in
            let next = state.core.nextTick
            return (next, state.wake.set(for: next, at: state.core.state.running.total))
        }
        guard let delay else { return }
        let wait = DispatchTimeInterval.milliseconds(Int(min(delay, 3_600_000)) + 1)
        let ring = { @Sendable [self] in
            if state.withLock({ $0.wake.rang(for: next) }) { parts.inbox.add(.tick) }
        }
        parts.inbox.queue.asyncAfter(deadline: begin + wait, execute: ring)
        // That one stands still while the machine sleeps, and would ring late by as much; this one may be set back.
        parts.inbox.queue.asyncAfter(wallDeadline: .now() + wait, execute: ring)
    }

    /// A key's file may need room on a full disk, also to be renamed before it goes.
    private func withReserve(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch  where store.giveReserveBack() {
            logDisk()
            try body()
        }
    }

    /// - Parameter connection: To the broker, as the core knew it: while the disk was written there may have come another.
    private func perform(_ effect: DeviceEffect, _ parts: Parts, _ connection: RandomID?) throws {
        switch effect {
        case .destroyKeys(let app): try withReserve { try keystore.destroy(for: app) }
        case .createKeys(let app): try withReserve { try keystore.create(for: app) }
        case .store(let changes):
            let wasFull = store.isDiskFull
            try store.apply(changes)
            if store.isDiskFull != wasFull { logDisk() }
        case .subscribe(let filters, let barrier): parts.bus.subscribe(filters, barrier: barrier, on: connection)
        case .unsubscribe(let filters): parts.bus.unsubscribe(filters, on: connection)
        case .publish(let address, let payload, let retain):
            parts.bus.publish(address, payload, retain: retain, on: connection)
        case .report(let status): parts.bus.report(status, on: connection)
        case .reconnect: parts.bus.reconnect(connection)
        case .send(let link, let frame): parts.links.send(frame, to: link)
        case .sendKeys(let link, let app): parts.links.send(.keys(try keystore.keys(of: app)), to: link)
        case .close(let link): parts.links.close(link)
        case .display(let link, let id, let text):
            display(text, of: state.withLock { $0.core.links[link] }, parts) { isShown in
                parts.inbox.add(.displayed(link, id: id, isShown))
            }
        case .checkCode(let check, let text, let code):
            guard codes.take() else { return parts.links.send(.codeResult(false), to: check.link) }
            codeQueue.async { [self] in
                defer { codes.giveBack() }
                do {
                    parts.inbox.add(.codeChecked(check, isRight: try code.isOf(text)))
                } catch {
                    logger.error("a debug code could not be compared", metadata: ["reason": "\(error)"])
                    parts.links.send(.codeResult(false), to: check.link)
                }
            }
        case .checkPasscode(let check, let text, let hash, let new):
            // One at a time, as the core says.
            codeQueue.async { [logger] in
                do {
                    let isRight = try hash.map { try $0.isOf(text ?? "") } ?? true
                    parts.inbox.add(
                        .passcodeChecked(check, isRight ? .right(new: try new.map(CodeHash.init(of:))) : .wrong))
                } catch {
                    logger.error("a passcode could not be compared", metadata: ["reason": "\(error)"])
                    parts.inbox.add(.passcodeChecked(check, .unknown))
                }
            }
        case .log(let entry): log(entry)
        }
    }

    /// Shows a text to the person at the device. A display command takes the screen while it runs.
    ///
    /// - Parameter app: Nil when it has gone.
    private func display(
        _ text: String, of app: AppID?, _ parts: Parts, done: @escaping @Sendable (Bool) -> Void
    ) {
        guard let command = configuration.displayCommand, let program = command.first else {
            let isLogged = loggedTexts.withLock { texts in
                texts[app, default: MinuteBudget(Self.textsInAMinute)].take(at: .now)
            }
            guard isLogged else { return done(false) }
            let line = Text.printable(text, limit: Link.maximumText)
            logger.notice("message for the person at this device", metadata: ["text": "\(line)"])
            return done(logger.logLevel <= .notice)
        }
        guard displays.take(for: app) else { return done(false) }
        displayQueue.async { [self] in
            parts.links.tell(isActive: false)
            defer { parts.links.tell(isActive: true) }
            do {
                done(try DisplayCommand(words: command).show(text) { [self] in displays.giveBack(of: app) })
            } catch {
                logger.error("the display command failed", metadata: ["command": "\(program)", "reason": "\(error)"])
                done(false)
            }
        }
    }

    /// Says on what the agent lives.
    func logDisk() {
        if store.isDiskFull {
            logger.warning("the disk is full: the agent goes on with the little room that it has kept; make room")
        } else {
            logger.notice("the disk has room again")
        }
    }

    private func log(_ entry: DeviceEffect.LogEntry) {
        let level: Logger.Level =
            switch entry.level {
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            }
        var metadata: Logger.Metadata = [:]
        metadata["app"] = entry.app.map { "\($0)" }
        metadata["detail"] = entry.detail.map { "\(Text.printable($0))" }
        logger.log(level: level, "\(entry.message)", metadata: metadata)
    }
}

/// So many may be under way at a time.
private final class Slots: Sendable {
    private let left: Mutex<Int>

    init(_ count: Int) { left = Mutex(count) }

    func take() -> Bool {
        left.withLock { left in
            guard left > 0 else { return false }
            left -= 1
            return true
        }
    }

    func giveBack() { left.withLock { $0 += 1 } }
}
