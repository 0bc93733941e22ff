/// One change of an app's log level that really happened, or a code that was refused. Numbered with the events.
package struct LogLevelChange: Hashable, Sendable {
    package enum Why: String, CaseIterable, Hashable, Sendable { case policy, expired, codeEntered, codeRefused }

    package var header: EventHeader
    package var old: LogLevel
    package var new: LogLevel
    package var why: Why
    /// When it falls back by itself.
    package var until: Timestamp?

    package init(header: EventHeader, old: LogLevel, new: LogLevel, why: Why, until: Timestamp? = nil) {
        self.header = header
        self.old = old
        self.new = new
        self.why = why
        self.until = until
    }
}

extension LogLevelChange: JSONWritable {
    package init(wire: [UInt8], device: DeviceID, app: AppID) throws {
        var header = EventHeader.Members()
        var old: LogLevel?
        var new: LogLevel?
        var why: Why?
        var until: Timestamp?
        try JSONReader.read(wire, limit: AppEvent.maximumSize) { reader in
            try reader.object { name, value in
                switch name {
                case "old": old = try value.value()
                case "new": new = try value.value()
                case "why": why = try value.oneOf()
                case "until": until = try value.value()
                default: try header.read(name, &value)
                }
            }
        }
        self.init(
            header: try header.header(device: device, app: app), old: try required(old, "old"),
            new: try required(new, "new"), why: try required(why, "why"), until: until)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            header.writeMembers(to: &writer)
            writer.member("old", old)
            writer.member("new", new)
            writer.member("why", why.rawValue)
            writer.member("until", ifPresent: until)
        }
    }
}
