/// The value of one policy as an app gets it: layers, defaults and unknown values are already dealt with.
package enum PolicyValue: Hashable, Sendable {
    case auth(AuthState, message: String)
    case config([String: String])
    case openIn(OpenInPolicy, whitelist: [AppID])
    case openFrom(OpenFromPolicy, whitelist: [AppID])
    case pasteboard(PasteboardPolicy)
    case print(PrintPolicy)
    case secureFileIO(SecureFileIOPolicy)
    /// The apps are those that `appConnectApps` stands for at the moment; of the other policies there are none.
    case dragAndDrop(DragAndDropPolicy, apps: [AppID] = [])
    /// Beside the others it is large, and mostly the default: it has its own place, so that a record of all stays small.
    indirect case secureServices(SecureServicesValue)
    case logLevel(LogLevel)

    package static let defaultMessage = "Your administrator has not authorized this app."
    /// What the app says at once, and the agent when it has taken note.
    package static let selfRetiredMessage = "This app has retired itself."

    package var policy: Policy {
        switch self {
        case .auth: .auth
        case .config: .config
        case .openIn: .openIn
        case .openFrom: .openFrom
        case .pasteboard: .pasteboard
        case .print: .print
        case .secureFileIO: .secureFileIO
        case .dragAndDrop: .dragAndDrop
        case .secureServices: .secureServices
        case .logLevel: .logLevel
        }
    }

    /// What holds for an app for which no message ever arrived.
    package static func `default`(of policy: Policy) -> PolicyValue {
        switch policy {
        case .auth: .auth(.unauthorized, message: defaultMessage)
        case .config: .config([:])
        case .openIn: .openIn(.unauthorized, whitelist: [])
        case .openFrom: .openFrom(.unauthorized, whitelist: [])
        case .pasteboard: .pasteboard(.unauthorized)
        case .print: .print(.unauthorized)
        case .secureFileIO: .secureFileIO(.required)
        case .dragAndDrop: .dragAndDrop(.notAllowed)
        case .secureServices: .secureServices(SecureServicesValue())
        case .logLevel: .logLevel(.status)
        }
    }

    /// Whether going from `current` to this value gives an app nothing that it does not have already. Such a change may
    /// take effect at once, whatever is not yet known; any other waits until the controller's wish is certain.
    package func isTightening(of current: PolicyValue) -> Bool {
        switch (current, self) {
        case (.auth(let old, _), .auth(let new, _)): strictness(new) > strictness(old)
        case (.openIn(let old, let oldApps), .openIn(let new, let newApps)):
            Self.rank(old.rawValue) > Self.rank(new.rawValue)
                || (old == new && Set(newApps).isStrictSubset(of: oldApps))
        case (.openFrom(let old, let oldApps), .openFrom(let new, let newApps)):
            Self.rank(old.rawValue) > Self.rank(new.rawValue)
                || (old == new && Set(newApps).isStrictSubset(of: oldApps))
        case (.pasteboard(let old), .pasteboard(let new)): Self.rank(old.rawValue) > Self.rank(new.rawValue)
        case (.print(let old), .print(let new)): old.rawValue > new.rawValue
        case (.dragAndDrop(let old, let oldApps), .dragAndDrop(let new, let newApps)):
            old.rawValue > new.rawValue || (old == new && Set(newApps).isStrictSubset(of: oldApps))
        case (.secureServices(let old), .secureServices(let new)):
            !old.isLocked && new.isLocked && !SecureServicesValue.Offline.loosens(old.offline, new.offline)
        case (.logLevel(let old), .logLevel(let new)): old > new
        default: false
        }
    }

    private func strictness(_ state: AuthState) -> Int {
        switch state {
        case .authorized: 0
        case .unauthorized: 1
        case .retired: 2
        }
    }

    /// unauthorized (0) allows nothing, authorized (1) everything, whitelist and secureCopy (2) something between.
    private static func rank(_ raw: Int) -> Int { raw == 1 ? 2 : raw == 2 ? 1 : 0 }
}

extension PolicyValue {
    /// Texts by their bytes: an app is told of one that is only written differently. Equal ones have equal hashes.
    package static func == (left: PolicyValue, right: PolicyValue) -> Bool {
        switch (left, right) {
        case (.auth(let old, let oldMessage), .auth(let new, let newMessage)):
            old == new && Text.isSame(oldMessage, newMessage)
        case (.config(let old), .config(let new)): isSame(old, new)
        case (.openIn(let old, let oldApps), .openIn(let new, let newApps)): old == new && oldApps == newApps
        case (.openFrom(let old, let oldApps), .openFrom(let new, let newApps)): old == new && oldApps == newApps
        case (.pasteboard(let old), .pasteboard(let new)): old == new
        case (.print(let old), .print(let new)): old == new
        case (.secureFileIO(let old), .secureFileIO(let new)): old == new
        case (.dragAndDrop(let old, let oldApps), .dragAndDrop(let new, let newApps)):
            old == new && oldApps == newApps
        case (.secureServices(let old), .secureServices(let new)): old == new
        case (.logLevel(let old), .logLevel(let new)): old == new
        default: false
        }
    }

    private static func isSame(_ old: [String: String], _ new: [String: String]) -> Bool {
        guard old.count == new.count else { return false }
        return old.allSatisfy { name, value in
            guard let index = new.index(forKey: name) else { return false }
            return Text.isSame(new[index].key, name) && Text.isSame(new[index].value, value)
        }
    }
}

extension PolicyValue: JSONWritable {
    /// The value's members on the link: `{"state":"authorized","message":""}`, `{"values":{…}}`, `{"policy":…,"apps":…}`.
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .auth(let state, let message):
                writer.member("state", state)
                writer.member("message", message)
            case .config(let values): writer.member("values", values)
            case .openIn(let policy, let apps):
                writer.member("policy", policy)
                writer.member("apps", apps)
            case .openFrom(let policy, let apps):
                writer.member("policy", policy)
                writer.member("apps", apps)
            case .pasteboard(let policy): writer.member("policy", policy)
            case .print(let policy): writer.member("policy", policy)
            case .secureFileIO(let policy): writer.member("policy", policy)
            case .dragAndDrop(let policy, let apps):
                writer.member("policy", policy)
                if policy == .appConnectApps { writer.member("apps", apps) }
            case .secureServices(let value): value.writeMembers(to: &writer)
            case .logLevel(let level): writer.member("level", level)
            }
        }
    }

    /// Reads the value of `policy` as ``write(to:)`` makes it.
    package init(of policy: Policy, from reader: inout JSONReader) throws {
        if policy == .secureServices {
            self = .secureServices(try SecureServicesValue(from: &reader))
            return
        }
        var members = Members()
        try reader.object { name, value in
            switch name {
            case "state": members.state = try value.value()
            case "message": members.message = try value.message()
            case "values": members.values = try value.value()
            case "policy": members.policy = try value.string()
            case "apps": members.apps = try value.values(limit: 1_024)
            case "level": members.level = try value.value()
            default: break
            }
        }
        self = try members.value(of: policy)
    }

    private struct Members {
        var state: AuthState?
        var message: String?
        var values: [String: String]?
        var policy: String?
        var apps: [AppID] = []
        var level: LogLevel?

        func value(of policy: Policy) throws -> PolicyValue {
            switch policy {
            case .auth: .auth(try required(state, "state"), message: message ?? "")
            case .config: .config(try required(values, "values"))
            case .openIn: .openIn(try known(), whitelist: apps)
            case .openFrom: .openFrom(try known(), whitelist: apps)
            case .pasteboard: .pasteboard(try known())
            case .print: .print(try known())
            case .secureFileIO: .secureFileIO(try known())
            case .dragAndDrop: dragAndDrop(try known())
            case .secureServices: .secureServices(SecureServicesValue())
            case .logLevel: .logLevel(try required(level, "level"))
            }
        }

        /// An agent that does not say which apps it stands for means none.
        private func dragAndDrop(_ policy: DragAndDropPolicy) -> PolicyValue {
            .dragAndDrop(policy, apps: policy == .appConnectApps ? apps : [])
        }

        func known<Value: WireNamed>() throws -> Value {
            let name = try required(policy, "policy")
            guard let value = Value(wireName: name) else {
                throw FleetProtocolError(
                    .value,
                    "unknown value '\(Text.printable(name, limit: 40))': expected "
                        + Value.wireNames.joined(separator: ", "), at: "policy")
            }
            return value
        }
    }
}

extension [String: String]: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var values: [String: String] = [:]
        try reader.object { name, value in
            // Two names that Unicode holds to be the same text would become one, silently.
            guard values.updateValue(try value.string(), forKey: name.text) == nil else {
                throw FleetProtocolError(.duplicate, "this member occurs twice, written differently")
            }
        }
        self = values
    }

    /// Members in the order of their names' bytes, so that equal dictionaries have equal bytes: `<` of strings is no order
    /// of all of them (of some, neither comes first, and they are not equal).
    package func write(to writer: inout JSONWriter) {
        writer.object {
            for (name, value) in sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                $0.member(named: name) { $0.value(value) }
            }
        }
    }
}
