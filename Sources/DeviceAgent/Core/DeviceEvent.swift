package import FleetProtocol

/// One connection of an app to the agent.
package struct LinkID: Hashable, Sendable {
    package let number: Int64
    package init(_ number: Int64) { self.number = number }
}

/// Which document a typed debug code is compared for, and who waits for the answer.
package struct CodeCheck: Hashable, Sendable {
    package let app: AppID
    package let address: Address
    package let change: Revision
    let link: LinkID
}

/// What happens to a device's agent.
package enum DeviceEvent: Sendable {
    /// The broker has accepted a connection; `connection` is its random name.
    case connected(connection: RandomID)
    case disconnected
    /// The subscriptions that were asked for with this barrier stand.
    case subscribed(barrier: Int64)
    case message(topic: String, payload: [UInt8])
    /// A process registers; the shell has checked that it may be this app.
    indirect case registered(LinkID, Registration)
    case frame(LinkID, AppFrame)
    case linkClosed(LinkID)
    /// A process wanted to be an app that it may not be.
    case registrationRefused(AppID, reason: String)
    /// A debug code has been compared with its hash.
    indirect case codeChecked(CodeCheck, isRight: Bool)
    /// A passcode has been compared with its hash, and the new one's hash made where one is set.
    indirect case passcodeChecked(PasscodeCheck, PasscodeCheck.Verdict)
    case displayed(LinkID, id: Int64, Bool)
    /// Time has passed.
    case tick
    /// The agent ends in good order.
    case stopping
}

/// What is to be done, in this order.
package enum DeviceEffect: Sendable {
    /// Before anything is stored or said.
    case destroyKeys(AppID)
    /// Where there are none.
    case createKeys(AppID)
    /// One transaction, committed before anything is sent.
    case store([StoreChange])
    /// Subscribe, and say ``DeviceEvent/subscribed(barrier:)`` when all of it stands.
    case subscribe([TopicFilter], barrier: Int64)
    case unsubscribe([TopicFilter])
    case publish(Address, [UInt8], retain: Bool)
    /// Publish the newest state of an app, retained. One that has not been sent yet gives way to it, unwritten.
    indirect case report(Status)
    /// Leave this connection, as if it had been lost, for another one.
    case reconnect
    case send(LinkID, AgentFrame)
    /// Read the app's keys, and send them.
    case sendKeys(LinkID, AppID)
    case close(LinkID)
    case display(LinkID, id: Int64, text: String)
    indirect case checkCode(CodeCheck, text: String, CodeHash)
    /// Compare `text` with its hash, if there is one; then make the hash of `new`, if that is given.
    indirect case checkPasscode(PasscodeCheck, text: String?, CodeHash?, new: String?)
    case log(LogEntry)

    /// Whether it belongs to the connection that there was when it was decided, see ``DeviceCore/connection``.
    package var isForBroker: Bool {
        switch self {
        case .subscribe, .unsubscribe, .publish, .report, .reconnect: true
        case .destroyKeys, .createKeys, .store, .send, .sendKeys, .close, .display, .checkCode, .checkPasscode, .log:
            false
        }
    }

    package struct LogEntry: Sendable {
        package enum Level: Sendable { case debug, info, notice, warning, error }
        package let level: Level
        package let message: String
        package let app: AppID?
        package let detail: String?
    }
}

/// One change of what must survive a restart.
package enum StoreChange: Sendable {
    case started(boot: Int64, disk: Int64, DeviceState.Owner)
    case trust([UInt8])
    case groups([GroupID])
    case clock(RunningTime, Contact?, highest: Revision)
    /// nil: the document counts no more.
    case document(Address, [UInt8]?)
    case mark(Address, DocumentMark)
    case app(AppRecord)
    case passcode(PasscodeRecord)
    case event(KeptEvent)
    case dropEvents(boot: Int64, through: Int64)
    case dropEvent(boot: Int64, number: Int64)
}

/// The highest document that was ever accepted at a topic.
package struct DocumentMark: Hashable, Sendable {
    package var revision: Revision
    /// Of the wire bytes; nil for a floor that came with the enrolment.
    package var digest: Digest?

    package init(revision: Revision, digest: Digest?) {
        self.revision = revision
        self.digest = digest
    }
}

/// A numbered report that the controller has not confirmed yet.
package struct KeptEvent: Hashable, Sendable {
    package enum Body: Hashable, Sendable {
        case event(AppEvent)
        case logLevel(LogLevelChange)
    }

    package var body: Body

    package init(body: Body) { self.body = body }

    package var header: EventHeader {
        switch body {
        case .event(let event): event.header
        case .logLevel(let change): change.header
        }
    }

    /// An app, who takes itself for one, or who sits at it, can cause it as often as they like.
    var isAtWill: Bool {
        switch body {
        case .event(let event): [.blocked, .ready, .refused].contains(event.kind)
        case .logLevel(let change): change.why == .codeRefused
        }
    }

    var address: Address {
        switch body {
        case .event(let event): .reply(event.header.device, event.header.app, .event)
        case .logLevel(let change): .reply(change.header.device, change.header.app, .logLevel)
        }
    }

    /// The wire form, saying which is the oldest that is kept now.
    package func wire(oldest: Int64) -> [UInt8] {
        switch body {
        case .event(var event):
            event.header.oldest = oldest
            return event.json
        case .logLevel(var change):
            change.header.oldest = oldest
            return change.json
        }
    }
}
