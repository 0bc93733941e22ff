import FleetProtocol

/// How a part of a policy file must look: what the walk over it goes by.
indirect enum Shape: Sendable {
    /// Text for people: no control characters.
    case message
    /// One of these words.
    case choice([String])
    case appID
    case flag
    case whole(ClosedRange<Int64>)
    /// `5m`, `12h`, `90d`, or whole seconds.
    case duration(ClosedRange<Int64>)
    case time
    case binary
    case list(Shape, limit: Int)
    /// Any keys, with texts as values.
    case texts
    case object([Member])

    struct Member: Sendable {
        let name: String
        let shape: Shape
        var isRequired = false
    }
}

extension Shape {
    private static let longest: Int64 = 100 * 366 * 86_400

    private static let opening = Shape.object([
        Member(name: "policy", shape: .choice(DLP.Opening.names), isRequired: true),
        Member(name: "apps", shape: .list(.appID, limit: 1_024)),
    ])

    /// What stands below an aspect's name in `spec`.
    static func value(of aspect: Aspect) -> Shape {
        switch aspect {
        case .auth:
            .object([
                Member(name: "state", shape: .choice(AuthState.wireNames), isRequired: true),
                Member(name: "message", shape: .message),
            ])
        case .dlp:
            .object([
                Member(name: "openIn", shape: opening), Member(name: "openFrom", shape: opening),
                Member(name: "pasteboard", shape: .choice(PasteboardPolicy.wireNames)),
                Member(name: "print", shape: .choice(PrintPolicy.wireNames)),
                Member(name: "dragAndDrop", shape: .choice(DragAndDropPolicy.wireNames)),
            ])
        case .config: .texts
        case .secureServices:
            .object([
                Member(name: "locked", shape: .flag),
                Member(
                    name: "passcode",
                    shape: .object([
                        Member(name: "required", shape: .flag, isRequired: true),
                        Member(name: "minLength", shape: .whole(1...64)),
                        Member(
                            name: "classes",
                            shape: .list(.choice(SecureServicesValue.Passcode.classNames), limit: 5)),
                        Member(name: "maxAttempts", shape: .whole(1...1_000)),
                        Member(
                            name: "then",
                            shape: .choice(SecureServicesValue.Passcode.Consequence.allCases.map(\.rawValue))),
                    ])),
                Member(name: "autoLock", shape: .duration(1...longest)),
                Member(
                    name: "offline",
                    shape: .object([
                        Member(name: "blockAfter", shape: .duration(1...longest)),
                        Member(name: "wipeAfter", shape: .duration(1...longest)),
                    ])),
            ])
        case .logLevel:
            .object([
                Member(name: "level", shape: .choice(LogLevel.wireNames), isRequired: true),
                Member(name: "for", shape: .duration(1...366 * 86_400)),
                Member(name: "notAfter", shape: .time),
                Member(
                    name: "code",
                    shape: .object([
                        Member(
                            name: "scrypt",
                            shape: .object([
                                Member(name: "n", shape: .whole(2...65_536), isRequired: true),
                                Member(name: "r", shape: .whole(1...8), isRequired: true),
                                Member(name: "p", shape: .whole(1...4), isRequired: true),
                                Member(name: "salt", shape: .binary, isRequired: true),
                                Member(name: "hash", shape: .binary, isRequired: true),
                            ]), isRequired: true)
                    ])),
            ])
        }
    }
}
