extension AppFrame: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var members = Members()
        try reader.object { name, value in try members.read(name, &value) }
        self = try members.frame()
    }

    private struct Members {
        var type: String?
        var version: Int64?
        var app: AppID?
        var install: RandomID?
        var launch: RandomID?
        var sdk: String?
        var implements: Set<Callback> = []
        var token: String?
        var resume: Registration.Resume?
        var delivery: Int64?
        var isCalled = true
        var policy: Policy?
        var state: PolicyState?
        var message: String?
        var action: AppEvent.Action?
        var target: String?
        var number: Int64?
        var id: Int64?
        var text: String?
        var request: String?
        var passcode: String?
        var new: String?
        var item = PasteboardItem.Members()

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "type": type = try value.string(limit: 32)
            case "v":
                // Before anything else is looked at: another version may have other members.
                version = try value.integer()
                try checkVersion()
            case "app": app = try value.value()
            case "install": install = try value.value()
            case "launch": launch = try value.value()
            case "sdk": sdk = try value.message(limit: 64)
            case "implements":
                // A callback that this agent does not know is one that it never asks for.
                try value.array(limit: 64) {
                    if let known = Callback(rawValue: try $0.string()) { implements.insert(known) }
                }
            case "token": token = try value.string(limit: 200)
            case "resume": resume = try value.value()
            case "delivery": delivery = try value.integer()
            case "called": isCalled = try value.bool()
            case "policy": policy = try value.value()
            case "state": state = try value.value()
            case "message": message = try value.message()
            case "action": action = try value.oneOf()
            case "target": target = try value.message(limit: 500)
            case "number": number = try value.integer(in: 1...JSONValue.largestInteger)
            case "id": id = try value.integer()
            case "text": text = try value.message(limit: Link.maximumText)
            case "do": request = try value.string(limit: 32)
            case "passcode": passcode = try value.string(limit: PasscodeRequest.maximumLength)
            case "new": new = try value.string(limit: PasscodeRequest.maximumLength)
            default: try item.read(name, &value)
            }
        }

        private func checkVersion() throws {
            guard let version, version != Link.version else { return }
            throw FleetProtocolError(
                .version, "link version \(version), where this agent speaks \(Link.version)")
        }

        func frame() throws -> AppFrame {
            switch try required(type, "type") {
            case "register":
                _ = try required(version, "v")
                return .register(
                    Registration(
                        app: try required(app, "app"), install: try required(install, "install"),
                        launch: try required(launch, "launch"), sdk: try required(sdk, "sdk"), implements: implements,
                        token: token, resume: resume))
            case "ready": return .ready
            case "delivered":
                let number = try required(delivery, "delivery")
                return isCalled ? .delivered(number) : .taken(number)
            case "acknowledge":
                return .acknowledge(
                    try Acknowledgement(delivery: delivery, policy: policy, state: state, message: message))
            case "blocked": return .blocked(try required(action, "action"), target: target, number: number)
            case "retire": return .retire(number: number)
            case "display": return .display(id: try required(id, "id"), text: try required(text, "text"))
            case "copy": return .copy(id: try required(id, "id"), try item.item())
            case "paste": return .paste(id: try required(id, "id"))
            case "stop": return .stop
            case "code": return .code(try required(app, "app"), try required(text, "text"))
            case "used": return .used
            case "passcode": return .passcode(try passcodeRequest())
            case let unknown:
                throw FleetProtocolError(
                    .value, "unknown type '\(Text.printable(unknown, limit: 40))'", at: "type")
            }
        }

        private func passcodeRequest() throws -> PasscodeRequest {
            for (name, text) in [("passcode", passcode), ("new", new)] where text?.isEmpty == true {
                throw FleetProtocolError(.value, "a passcode has one character at least", at: name)
            }
            switch try required(request, "do") {
            case "enter": return .enter(try required(passcode, "passcode"))
            case "set": return .set(new: try required(new, "new"), current: passcode)
            case "lock": return .lock
            case let unknown:
                throw FleetProtocolError(
                    .value, "'\(Text.printable(unknown, limit: 40))': expected enter, set, lock", at: "do")
            }
        }
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .used: writer.member("type", "used")
            case .passcode(let request):
                writer.member("type", "passcode")
                request.writeMembers(to: &writer)
            case .register(let registration):
                writer.member("type", "register")
                registration.writeMembers(to: &writer)
            case .ready: writer.member("type", "ready")
            case .delivered(let number):
                writer.member("type", "delivered")
                writer.member("delivery", number)
            case .taken(let number):
                writer.member("type", "delivered")
                writer.member("delivery", number)
                writer.member("called", false)
            case .acknowledge(let acknowledgement):
                writer.member("type", "acknowledge")
                acknowledgement.writeMembers(to: &writer)
            case .blocked(let action, let target, let number):
                writer.member("type", "blocked")
                writer.member("action", action.rawValue)
                writer.member("target", ifPresent: target)
                writer.member("number", ifPresent: number)
            case .retire(let number):
                writer.member("type", "retire")
                writer.member("number", ifPresent: number)
            case .display(let id, let text):
                writer.member("type", "display")
                writer.member("id", id)
                writer.member("text", text)
            case .copy(let id, let item):
                writer.member("type", "copy")
                writer.member("id", id)
                item?.writeMembers(to: &writer)
            case .paste(let id):
                writer.member("type", "paste")
                writer.member("id", id)
            case .stop: writer.member("type", "stop")
            case .code(let app, let text):
                writer.member("type", "code")
                writer.member("app", app)
                writer.member("text", text)
            }
        }
    }
}

extension PasscodeRequest {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        switch self {
        case .enter(let passcode):
            writer.member("do", "enter")
            writer.member("passcode", passcode)
        case .set(let new, let current):
            writer.member("do", "set")
            writer.member("new", new)
            writer.member("passcode", ifPresent: current)
        case .lock: writer.member("do", "lock")
        }
    }
}

extension Registration {
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("v", Link.version)
        writer.member("app", app)
        writer.member("install", install)
        writer.member("launch", launch)
        writer.member("sdk", sdk)
        writer.member("implements", implements.sorted().map(\.rawValue))
        writer.member("token", ifPresent: token)
        writer.member("resume", ifPresent: resume)
    }
}

extension Registration.Resume: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        self.init()
        try reader.object { name, value in
            switch name {
            case "delivered": delivered = try Self.deliveries(&value)
            case "begun": begun = try Self.deliveries(&value)
            case "acknowledgements": acknowledgements = try value.values(limit: 64)
            default: break
            }
        }
    }

    /// An agent counts on from the highest, which it must still be able to; it begins with the milliseconds since 1970.
    private static func deliveries(_ value: inout JSONReader) throws -> [Int64] {
        var numbers: [Int64] = []
        try value.array(limit: 64) { numbers.append(try $0.integer(in: 0...Self.largestDelivery)) }
        return numbers
    }

    package static let largestDelivery: Int64 = 1 << 52

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("delivered", delivered)
            if !begun.isEmpty { writer.member("begun", begun) }
            writer.member("acknowledgements", acknowledgements)
        }
    }
}

extension Acknowledgement: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var delivery: Int64?
        var policy: Policy?
        var state: PolicyState?
        var message: String?
        try reader.object { name, value in
            switch name {
            case "delivery": delivery = try value.integer()
            case "policy": policy = try value.value()
            case "state": state = try value.value()
            case "message": message = try value.message()
            default: break
            }
        }
        try self.init(delivery: delivery, policy: policy, state: state, message: message)
    }

    init(delivery: Int64?, policy: Policy?, state: PolicyState?, message: String?) throws {
        self.init(
            delivery: try required(delivery, "delivery"), policy: try required(policy, "policy"),
            state: try required(state, "state"), message: message)
        guard self.policy.isAcknowledgedByApp else {
            throw FleetProtocolError(.value, "an app does not acknowledge \(self.policy.rawValue)", at: "policy")
        }
        guard self.policy != .auth || self.state != .unsupported else {
            throw FleetProtocolError(.value, "auth cannot be unsupported: every app implements it", at: "state")
        }
    }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("delivery", delivery)
        writer.member("policy", policy)
        writer.member("state", state)
        writer.member("message", ifPresent: message)
    }

    package func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }
}
