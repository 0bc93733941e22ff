import AppConnect
import DeviceAgent
import FleetProtocol

// What the documents promise, written again beside the product's own code: laws that asked that would not see its mistakes.

extension PolicyValue {
    static let expectedMessage = "Your administrator has not authorized this app."

    /// What holds for an app for which no message ever arrived.
    static func expectedDefault(of policy: Policy) -> PolicyValue {
        switch policy {
        case .auth: .auth(.unauthorized, message: expectedMessage)
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
}

extension ApplyRequest.Change {
    /// Who is kept from an app is told something.
    var asRead: Self {
        guard case .auth(let state, message: "") = value.content, state != .authorized else { return self }
        let value = DesiredValue(.auth(state, message: PolicyValue.expectedMessage))
        return Self(app: app, layer: layer, aspect: aspect, value: value, basedOn: basedOn)
    }
}

extension AppProperties {
    static let expectedInitial = AppProperties(
        managed: .unknown, authReason: .none, availability: .unavailable,
        values: Policy.allCases.map(PolicyValue.expectedDefault(of:)))
}

extension LogLevel {
    /// Where a document has a code, it is asked for at these.
    var isExpectedToAsk: Bool { self == .verbose || self == .debug }
}

extension OutcomeCounts {
    /// A log level that waits for its code is not there yet, and one that has expired was as it was wished to be.
    mutating func expect(_ outcome: Outcome) {
        switch outcome {
        case .applied, .expired: applied += 1
        case .error: error += 1
        case .unsupported: unsupported += 1
        case .rejected: rejected += 1
        case .delivered: delivered += 1
        case .pending, .awaitingCode: pending += 1
        }
    }
}

extension KeptEvent {
    /// Written again, beside the core's own.
    var isExpectedAtWill: Bool {
        switch body {
        case .event(let event): [.blocked, .ready, .refused].contains(event.kind)
        case .logLevel(let change): change.why == .codeRefused
        }
    }
}
