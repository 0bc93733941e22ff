import Testing

@testable import FleetProtocol

/// Random values of everything that stands on the bus. Each is one that the code may encode.
extension SeededGenerator {
    mutating func id() -> String {
        let first = Array("ABCXYZabcxyz0189")
        let rest = first + Array("._-")
        var text = String(first[Int.random(in: 0..<first.count, using: &self)])
        let length = chance(5) ? 47 : Int.random(in: 0...12, using: &self)
        for _ in 0..<length { text.append(rest[Int.random(in: 0..<rest.count, using: &self)]) }
        return text
    }

    mutating func device() -> DeviceID { DeviceID(unchecked: id()) }
    mutating func app() -> AppID { AppID(unchecked: id()) }
    mutating func group() -> GroupID { GroupID(unchecked: id()) }
    mutating func fleet() -> FleetID { FleetID(unchecked: id()) }
    mutating func name() -> Name { Name(unchecked: id()) }
    mutating func uuid() -> RandomID { .random(using: &self) }

    mutating func time() -> Timestamp {
        Timestamp(milliseconds: chance(5) ? number(Timestamp.range) : number(1_700_000_000_000...1_900_000_000_000))
    }

    /// A text of the kinds that break codecs: quotes, escapes, controls, wide and bidirectional characters.
    mutating func text(_ longest: Int = 24) -> String {
        let pieces = [
            "a", "Z", "0", " ", "\"", "\\", "/", "\n", "\t", "\u{0}", "\u{1F}", "\u{7F}", "é", "e\u{301}", "漢", "😀",
            "\u{202E}", "\u{2028}", "\u{FEFF}", "{", "]", "\u{1B}[2J", "ß", "K\u{212A}",
        ]
        var text = ""
        for _ in 0..<Int.random(in: 0...longest, using: &self) {
            text += pieces[Int.random(in: 0..<pieces.count, using: &self)]
        }
        return text
    }

    mutating func layer() -> Layer {
        switch number(0...2) {
        case 0: .all
        case 1: .group(group())
        default: .device(device())
        }
    }

    mutating func user() -> User {
        switch number(0...4) {
        case 0: .controller
        case 1: .operator(name())
        case 2: .viewer(name())
        case 3: .bridge(name())
        default: .device(device())
        }
    }

    /// One address of every case of ``Address``, and of every case within.
    mutating func addresses() -> [Address] {
        var result: [Address] = [.trust, .heartbeat, .presence(.controller)]
        result += [.groupMeta(group()), .membership(device()), .presence(.device(device())), .hello(device())]
        result.append(.received(device()))
        for layer in [Layer.all, .group(group()), .device(device())] {
            result += Aspect.allCases.map { .desired(layer, app(), $0) }
        }
        result += Address.Reply.allCases.map { .reply(device(), app(), $0) }
        for user in [User.controller, .operator(name()), .viewer(name()), .bridge(name()), .device(device())] {
            result += [.barrier(user), .response(user, name())]
            result += Verb.allCases.map { .request(user, $0) }
        }
        return result
    }

    mutating func opening() throws -> DLP.Opening {
        try pick([
            .unauthorized, .authorized, .appConnectApps, .whitelist(Array(Set(list(0...4) { $0.app() })).sorted()),
        ])
    }

    mutating func value(of aspect: Aspect) throws -> DesiredValue {
        switch aspect {
        case .auth:
            let state = try pick(AuthState.allCases)
            let message = text()
            return DesiredValue(
                .auth(state, message: message.isEmpty && state != .authorized ? PolicyValue.defaultMessage : message))
        case .dlp:
            var dlp = DLP()
            dlp.openIn = try opening()
            dlp.openFrom = try opening()
            dlp.pasteboard = try pick(PasteboardPolicy.allCases)
            dlp.print = try pick(PrintPolicy.allCases)
            dlp.dragAndDrop = try pick(DragAndDropPolicy.allCases)
            return DesiredValue(.dlp(dlp))
        case .config:
            var values: [String: String] = [:]
            for _ in 0..<number(0...40) { values[text()] = text(60) }
            return DesiredValue(.config(values))
        case .secureServices: return DesiredValue(.secureServices(try secureServices()))
        case .logLevel: return DesiredValue(.logLevel(try logLevelWish()))
        }
    }

    private mutating func secureServices() throws -> SecureServicesValue {
        var value = SecureServicesValue()
        value.isLocked = chance(20)
        value.passcode = try maybe {
            var passcode = SecureServicesValue.Passcode(isRequired: $0.chance(50))
            passcode.minLength = $0.maybe { $0.number(1...64) }
            passcode.classes = try $0.maybe {
                try $0.list(0...5) { try $0.pick(SecureServicesValue.Passcode.classNames) }
            }
            passcode.maxAttempts = $0.maybe { $0.number(1...1_000) }
            passcode.then = try $0.maybe { try $0.pick(SecureServicesValue.Passcode.Consequence.allCases) }
            return passcode
        }
        value.autoLock = maybe { $0.number(1...86_400) }
        value.offline = maybe {
            var offline = SecureServicesValue.Offline()
            offline.blockAfter = $0.maybe { $0.number(1...100 * 366 * 86_400) }
            offline.wipeAfter = $0.maybe { $0.number(1...100 * 366 * 86_400) }
            return offline
        }
        return value
    }

    private mutating func logLevelWish() throws -> LogLevelWish {
        let code = CodeHash(
            salt: list(8...64) { UInt8.random(in: .min ... .max, using: &$0) },
            hash: list(32...32) { UInt8.random(in: .min ... .max, using: &$0) }, n: 1 << number(1...16),
            r: number(1...8),
            p: number(1...4))
        return LogLevelWish(
            level: try pick(LogLevel.allCases), duration: maybe { $0.number(1...366 * 86_400) },
            notAfter: maybe { $0.time() },
            code: chance(50) ? code : nil)
    }

    mutating func desired() throws -> DesiredDocument {
        let aspect = try pick(Aspect.allCases)
        let address: Address
        let content: DesiredDocument.Content
        switch number(0...5) {
        case 0:
            (address, content) = (.groupMeta(group()), .groupMeta(GroupMeta(priority: number(-1_000_000...1_000_000))))
        case 1:
            (address, content) = (.membership(device()), .membership(Array(Set(list(0...9) { $0.group() })).sorted()))
        case 2: (address, content) = (.desired(layer(), app(), aspect), .tombstone)
        default: (address, content) = (.desired(layer(), app(), aspect), .aspect(try value(of: aspect)))
        }
        let revision = Revision(epoch: number(1...3), number: 1 + number(0...1_000))
        return DesiredDocument(
            fleet: uuid(), fleetID: FleetID(unchecked: "demo"), address: address, revision: revision,
            change: chance(50) ? revision : Revision(epoch: number(1...3), number: number(1...1_000)), issuedAt: time(),
            content: content)
    }

    mutating func trust() throws -> TrustDocument {
        TrustDocument(
            fleet: uuid(), fleetID: FleetID(unchecked: "demo"), version: number(1...99), issuedAt: time(),
            keys: try list(0...4) { _ in try SigningKey().publicKey })
    }

    mutating func clock(_ address: Address) -> ControllerClock {
        ControllerClock(
            fleet: uuid(), topic: address.topic(in: FleetID(unchecked: "demo")), epoch: number(1...9),
            revision: count(),
            at: time())
    }

    mutating func mark() -> EventMark { EventMark(incarnation: count(), boot: count(), number: count()) }

    mutating func hello() -> Hello {
        let device = device()
        return Hello(
            clock: clock(.hello(device)), device: device, connection: uuid(), nonce: maybe { $0.uuid() },
            received: maybe { $0.mark() },
            lost: Set(Hello.Lost.allCases.filter { _ in chance(50) }),
            documents: maybe { Digest(of: [.trust: Revision(epoch: 1, number: $0.count())]) })
    }

    mutating func received() -> Received {
        Received(fleet: uuid(), topic: Address.received(device()).topic(in: FleetID(unchecked: "demo")), mark: mark())
    }
}
