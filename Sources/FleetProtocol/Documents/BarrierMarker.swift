/// A client's own marker: published after the SUBACKs and read back, it comes behind all that is retained.
package struct BarrierMarker: Hashable, Sendable, JSONCodable {
    package let connection: RandomID
    package let counter: Int64

    package init(connection: RandomID, counter: Int64) {
        self.connection = connection
        self.counter = counter
    }

    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var connection: RandomID?
        var counter: Int64?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "connection": connection = try value.value()
            case "counter": counter = try value.integer()
            default: break
            }
        }
        _ = try required(version, "v")
        self.init(connection: try required(connection, "connection"), counter: try required(counter, "counter"))
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("connection", connection)
            writer.member("counter", counter)
        }
    }
}
