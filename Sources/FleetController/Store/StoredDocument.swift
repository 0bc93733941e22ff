import FleetProtocol
import GRDB

/// A desired document as it was published.
struct StoredDocument: Hashable, Sendable {
    let address: Address
    let revision: Revision
    let change: Revision
    let issuedAt: Timestamp
    let by: String
    let why: String?
    /// The JSON text of the value; nil for a tombstone.
    let value: String?
    /// Whether it is an auth document that says `retired`: the one value that wins over every other layer.
    let isRetired: Bool
    let wire: [UInt8]

    var isTombstone: Bool { value == nil }
}

/// Where a document stands, taken apart for the tables: the groups' and devices' own documents have app names of ours.
struct DocumentPlace: Hashable, Sendable {
    let layer: Layer
    let app: String
    let aspect: String

    init?(_ address: Address) {
        switch address {
        case .desired(let layer, let app, let aspect):
            self.init(layer: layer, app: app.text, aspect: aspect.text)
        case .groupMeta(let group): self.init(layer: .group(group), app: "_group", aspect: "meta")
        case .membership(let device): self.init(layer: .device(device), app: "_device", aspect: "membership")
        case .trust, .reply, .presence, .heartbeat, .hello, .received, .barrier, .request, .response: return nil
        }
    }

    private init(layer: Layer, app: String, aspect: String) {
        self.layer = layer
        self.app = app
        self.aspect = aspect
    }
}

extension Layer {
    /// `documents.layer`
    var number: Int64 {
        switch self {
        case .all: 0
        case .group: 1
        case .device: 2
        }
    }

    /// `documents.target`
    var target: String {
        switch self {
        case .all: ""
        case .group(let group): group.text
        case .device(let device): device.text
        }
    }

    init?(number: Int64, target: String) {
        switch number {
        case 0: self = .all
        case 1:
            guard let group = GroupID(target) else { return nil }
            self = .group(group)
        case 2:
            guard let device = DeviceID(target) else { return nil }
            self = .device(device)
        default: return nil
        }
    }
}
