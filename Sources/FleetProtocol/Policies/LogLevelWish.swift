/// The `log-level` aspect: a level, for how long, and the code that a person must enter first.
package struct LogLevelWish: Hashable, Sendable {
    package var level: LogLevel
    /// Seconds, counted from the first receipt of the document's `change`.
    package var duration: Int64?
    package var notAfter: Timestamp?
    package var code: CodeHash?

    package init(level: LogLevel, duration: Int64? = nil, notAfter: Timestamp? = nil, code: CodeHash? = nil) {
        self.level = level
        self.duration = duration
        self.notAfter = notAfter
        self.code = code
    }
}

extension LogLevelWish: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var level: LogLevel?
        var result = LogLevelWish(level: .status)
        try reader.object { name, value in
            switch name {
            case "level": level = try value.value()
            case "for": result.duration = try value.integer(in: 1...366 * 86_400)
            case "notAfter": result.notAfter = try value.value()
            case "code": result.code = try value.value()
            default: break
            }
        }
        result.level = try required(level, "level")
        self = result
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("level", level)
            writer.member("for", ifPresent: duration)
            writer.member("notAfter", ifPresent: notAfter)
            writer.member("code", ifPresent: code)
        }
    }
}

extension DesiredValue: JSONWritable {
    package func write(to writer: inout JSONWriter) {
        switch content {
        case .auth(let state, let message):
            writer.object { writer in
                writer.member("state", state)
                writer.member("message", message)
            }
        case .dlp(let dlp): dlp.write(to: &writer)
        case .config(let values): writer.object { $0.member("values", values) }
        case .secureServices(let value): value.write(to: &writer)
        case .logLevel(let wish): wish.write(to: &writer)
        // Not an empty object: of secure services, that is one without any limit.
        case .unreadable: writer.null()
        }
    }
}
