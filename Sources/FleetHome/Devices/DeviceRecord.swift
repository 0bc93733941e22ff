package import FleetProtocol

/// What the home knows of a device: `devices/ID.json`. It outlives the device's removal, so that a device which comes
/// back under its old id is known as another one.
package struct DeviceRecord: Hashable, Sendable {
    package let device: DeviceID
    /// Rises at each enrolment.
    package let incarnation: Int64
    package let enrolledAt: Timestamp
    package let removedAt: Timestamp?

    package var isEnrolled: Bool { removedAt == nil }
}

extension DeviceRecord: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var version: Int64?
        var device: DeviceID?
        var incarnation: Int64?
        var enrolledAt: Timestamp?
        var removedAt: Timestamp?
        try reader.object { name, value in
            switch name {
            case "v": version = try value.version()
            case "device": device = try value.value()
            case "incarnation": incarnation = try value.integer(in: 1...JSONValue.largestInteger - 1)
            case "enrolledAt": enrolledAt = try value.value()
            case "removedAt": removedAt = try value.value()
            default: break
            }
        }
        _ = try required(version, "v")
        self.init(
            device: try required(device, "device"), incarnation: try required(incarnation, "incarnation"),
            enrolledAt: try required(enrolledAt, "enrolledAt"), removedAt: removedAt)
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("v", 1)
            writer.member("device", device)
            writer.member("incarnation", incarnation)
            writer.member("enrolledAt", enrolledAt)
            writer.member("removedAt", ifPresent: removedAt)
        }
    }
}
