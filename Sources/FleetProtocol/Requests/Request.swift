/// What an operator asks of the controller. The user and the verb stand in the topic, which the broker vouches for.
///
/// A sender repeats the same bytes until it is answered or `notAfter` has passed; the controller acts once per id.
package struct Request: Hashable, Sendable {
    package static let maximumSize = 1_024 * 1_024

    package let id: RandomID
    /// The last level of the topic that the answer goes to.
    package let replyTo: Name
    package let notAfter: Timestamp
    package let body: JSONValue

    package init(id: RandomID, replyTo: Name, notAfter: Timestamp, body: JSONValue) {
        self.id = id
        self.replyTo = replyTo
        self.notAfter = notAfter
        self.body = body
    }
}

extension Request: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var id: RandomID?
        var replyTo: Name?
        var notAfter: Timestamp?
        var body: JSONValue?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "id": id = try value.value()
            case "replyTo": replyTo = try value.value()
            case "notAfter": notAfter = try value.value()
            case "body": body = try value.value()
            default: break
            }
        }
        _ = try required(version, "v")
        self.init(
            id: try required(id, "id"), replyTo: try required(replyTo, "replyTo"),
            notAfter: try required(notAfter, "notAfter"), body: try required(body, "body"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("id", id)
            writer.member("replyTo", replyTo)
            writer.member("notAfter", notAfter)
            writer.member("body", body)
        }
    }
}

/// The controller's answer to a request: a body, or an error that says where.
package struct Response: Hashable, Sendable {
    package static let maximumSize = 512 * 1_024
    /// How large the body of one page may become, in bytes.
    package static let pageSize = 256 * 1_024

    package enum Result: Hashable, Sendable {
        /// `next`, when there is more: goes into the `page` member of the following request's body.
        case success(JSONValue, next: String?)
        case failure(Failure)
    }

    package struct Failure: Error, Hashable, Sendable {
        package enum Code: String, CaseIterable, Sendable {
            case invalid, conflict, forbidden, notFound, tooLarge, expired, unavailable
        }

        package let code: Code
        package let message: String
        /// The member of the request's body, such as `changes[2].value.state`.
        package let location: String?

        package init(_ code: Code, _ message: String, at location: String? = nil) {
            self.code = code
            self.message = message
            self.location = location
        }
    }

    package let id: RandomID
    package let result: Result

    package init(id: RandomID, result: Result) {
        self.id = id
        self.result = result
    }
}

extension Response: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var id: RandomID?
        var isSuccess: Bool?
        var body: JSONValue?
        var next: String?
        var failure: Failure?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "id": id = try value.value()
            case "ok": isSuccess = try value.bool()
            case "body": body = try value.value()
            case "next": next = try value.string()
            case "error": failure = try value.value()
            default: break
            }
        }
        _ = try required(version, "v")
        self.id = try required(id, "id")
        result =
            try required(isSuccess, "ok")
            ? .success(try required(body, "body"), next: next) : .failure(try required(failure, "error"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("id", id)
            switch result {
            case .success(let body, let next):
                writer.member("ok", true)
                writer.member("body", body)
                writer.member("next", ifPresent: next)
            case .failure(let failure):
                writer.member("ok", false)
                writer.member("error", failure)
            }
        }
    }
}

extension Response.Failure: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var code: Code?
        var message: String?
        var location: String?
        try reader.object { name, value in
            switch name {
            case "code": code = try value.oneOf()
            case "message": message = try value.message(limit: 10_000)
            case "where": location = try value.message(limit: 500)
            default: break
            }
        }
        self.init(try required(code, "code"), try required(message, "message"), at: location)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("code", code.rawValue)
            writer.member("message", message)
            writer.member("where", ifPresent: location)
        }
    }
}
