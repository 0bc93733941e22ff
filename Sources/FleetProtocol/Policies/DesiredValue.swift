/// The value of a desired document: what one layer says about one aspect of an app.
///
/// Reading it never fails open: what is missing or not understood counts as its default (unauthorized), for that policy
/// alone, and stands in ``problems``.
package struct DesiredValue: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case auth(AuthState, message: String)
        case dlp(DLP)
        case config([String: String])
        case secureServices(SecureServicesValue)
        case logLevel(LogLevelWish)
        /// Nothing could be read at all: what was in force before stays so, and secure services are locked.
        case unreadable
    }

    package let content: Content
    /// What was not understood, by policy: for the status, in the words of the error.
    package let problems: [Policy: String]

    package init(_ content: Content, problems: [Policy: String] = [:]) {
        self.content = content
        self.problems = problems
    }

    /// Reads the `value` of a document about `aspect`. Throws only for what is no JSON.
    package init(of aspect: Aspect, from reader: inout JSONReader) throws {
        let start = reader.mark
        do {
            switch aspect {
            case .auth: self = try Self.auth(from: &reader)
            case .dlp: self = try Self.dlp(from: &reader)
            case .config: self = try Self.config(from: &reader)
            case .secureServices: self.init(.secureServices(try SecureServicesValue(from: &reader)))
            case .logLevel: self.init(.logLevel(try LogLevelWish(from: &reader)))
            }
        } catch let error as FleetProtocolError where error.isAboutMeaning {
            reader.rewind(to: start)
            try reader.skip()
            switch aspect {
            case .auth:
                self.init(
                    .auth(.unauthorized, message: PolicyValue.defaultMessage), problems: [.auth: error.description])
            case .dlp: self.init(.dlp(DLP()), problems: Self.all(of: .dlp, error.description))
            case .config, .secureServices, .logLevel:
                self.init(.unreadable, problems: Self.all(of: aspect, error.description))
            }
        }
    }

    private static func all(of aspect: Aspect, _ problem: String) -> [Policy: String] {
        var problems: [Policy: String] = [:]
        for policy in Policy.allCases where policy.aspect == aspect { problems[policy] = problem }
        return problems
    }

    private static func auth(from reader: inout JSONReader) throws -> DesiredValue {
        var state: AuthState?
        var message = ""
        try reader.object { name, value in
            switch name {
            case "state": state = try value.value()
            case "message": message = try value.message()
            default: break
            }
        }
        let known = try required(state, "state")
        if message.isEmpty, known != .authorized { message = PolicyValue.defaultMessage }
        return DesiredValue(.auth(known, message: message))
    }

    private static func config(from reader: inout JSONReader) throws -> DesiredValue {
        var values: [String: String]?
        try reader.object { name, value in if name == "values" { values = try value.value() } }
        return DesiredValue(.config(try required(values, "values")))
    }

    private static func dlp(from reader: inout JSONReader) throws -> DesiredValue {
        var dlp = DLP()
        var problems: [Policy: String] = [:]
        /// Reads one member; if that fails, its policy alone stays unauthorized.
        func attempt(
            _ policy: Policy, _ value: inout JSONReader, _ read: (inout JSONReader) throws -> Void
        ) throws {
            let start = value.mark
            do {
                try read(&value)
            } catch let error as FleetProtocolError where error.isAboutMeaning {
                value.rewind(to: start)
                try value.skip()
                problems[policy] = error.inside(policy.rawValue).description
            }
        }
        try reader.object { name, value in
            switch name {
            case "openIn": try attempt(.openIn, &value) { dlp.openIn = try DLP.Opening(from: &$0) }
            case "openFrom": try attempt(.openFrom, &value) { dlp.openFrom = try DLP.Opening(from: &$0) }
            case "pasteboard": try attempt(.pasteboard, &value) { dlp.pasteboard = try $0.value() }
            case "print": try attempt(.print, &value) { dlp.print = try $0.value() }
            case "dragAndDrop": try attempt(.dragAndDrop, &value) { dlp.dragAndDrop = try $0.value() }
            default: break
            }
        }
        return DesiredValue(.dlp(dlp), problems: problems)
    }
}
