/// For whom a desired document is meant. A device beats its groups, a group beats all.
package enum Layer: Hashable, Sendable, CustomStringConvertible, JSONCodable {
    case all
    case group(GroupID)
    case device(DeviceID)

    /// `all`, `group/kiosk` or `device/till-0042`: as in topics and policy files.
    package var description: String {
        switch self {
        case .all: "all"
        case .group(let group): "group/\(group)"
        case .device(let device): "device/\(device)"
        }
    }

    package init(parsing text: String) throws {
        if text == "all" {
            self = .all
        } else if text.hasPrefix("group/") {
            self = .group(try GroupID(checking: text.dropFirst(6)))
        } else if text.hasPrefix("device/") {
            self = .device(try DeviceID(checking: text.dropFirst(7)))
        } else {
            throw FleetProtocolError(
                .value, "'\(Text.printable(text, limit: 60))' is no target: expected all, group/NAME or device/ID")
        }
    }

    package init(from reader: inout JSONReader) throws { try self.init(parsing: try reader.string()) }
    package func write(to writer: inout JSONWriter) { writer.value(description) }
}
