/// What every numbered report of a device begins with. Numbers count up within one boot, without a gap.
package struct EventHeader: Hashable, Sendable {
    package var device: DeviceID
    package var app: AppID
    package var incarnation: Int64
    package var boot: Int64
    package var number: Int64
    /// The oldest number of this boot that the device still keeps: a gap before it will not be filled any more.
    package var oldest: Int64
    package var at: Timestamp

    package init(
        device: DeviceID, app: AppID, incarnation: Int64, boot: Int64, number: Int64, oldest: Int64, at: Timestamp
    ) {
        self.device = device
        self.app = app
        self.incarnation = incarnation
        self.boot = boot
        self.number = number
        self.oldest = oldest
        self.at = at
    }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("v", 1)
        writer.member("device", device)
        writer.member("app", app)
        writer.member("incarnation", incarnation)
        writer.member("boot", boot)
        writer.member("number", number)
        writer.member("oldest", oldest)
        writer.member("at", at)
    }

    struct Members {
        var version: Int64?
        var device: DeviceID?
        var app: AppID?
        var incarnation: Int64?
        var boot: Int64?
        var number: Int64?
        var oldest: Int64?
        var at: Timestamp?

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "v": version = try value.version()
            case "device": device = try value.value()
            case "app": app = try value.value()
            case "incarnation": incarnation = try value.integer()
            case "boot": boot = try value.integer()
            case "number": number = try value.integer(in: 1...JSONValue.largestInteger)
            case "oldest": oldest = try value.integer(in: 1...JSONValue.largestInteger)
            case "at": at = try value.value()
            default: break
            }
        }

        func header(device expectedDevice: DeviceID, app expectedApp: AppID) throws -> EventHeader {
            _ = try required(version, "v")
            guard try required(device, "device") == expectedDevice else {
                throw FleetProtocolError(.mismatch, "this is not the device of the topic", at: "device")
            }
            guard try required(app, "app") == expectedApp else {
                throw FleetProtocolError(.mismatch, "this is not the app of the topic", at: "app")
            }
            let number = try required(number, "number")
            let oldest = try required(oldest, "oldest")
            guard oldest <= number else {
                throw FleetProtocolError(.value, "the oldest kept event is newer than this one", at: "oldest")
            }
            return EventHeader(
                device: expectedDevice, app: expectedApp, incarnation: try required(incarnation, "incarnation"),
                boot: try required(boot, "boot"), number: number, oldest: oldest, at: try required(at, "at"))
        }
    }
}

extension EventHeader {
    /// That of an event or log-level change, whatever else it says: a newer agent may tell of what is not known here.
    package init(wire: [UInt8], device: DeviceID, app: AppID) throws {
        var members = Members()
        try JSONReader.read(wire, limit: AppEvent.maximumSize) { reader in
            try reader.object { name, value in try members.read(name, &value) }
        }
        self = try members.header(device: device, app: app)
    }
}
