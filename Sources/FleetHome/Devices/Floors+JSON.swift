package import FleetProtocol

extension Floors: JSONCodable {
    /// The controller's answer to `enroll`: `{"epoch":1,"floors":{"topic":[epoch,revision]},"incarnation":2,"trust":"…"}`.
    package init(from reader: inout JSONReader) throws {
        var epoch: Int64?
        // Earlier controllers do not name it.
        var incarnation: Int64 = 1
        var trust: [UInt8]?
        var floors: [(String, [Int64])] = []
        try reader.object { name, value in
            switch name {
            case "epoch": epoch = try value.integer(in: 1...JSONValue.largestInteger)
            case "incarnation": incarnation = try value.integer(in: 1...JSONValue.largestInteger - 1)
            case "trust": trust = try value.stringBytes()
            case "floors":
                try value.object { topic, value in
                    let pair = try value.values(Int64.self, limit: 2)
                    guard pair.count == 2 else {
                        throw FleetProtocolError(.value, "expected [epoch, revision]")
                    }
                    floors.append((topic.text, pair))
                }
            default: break
            }
        }
        let wire = try required(trust, "trust")
        do {
            self.init(trust: try SignedDocument(wire: wire), epoch: try required(epoch, "epoch"))
        } catch let error as FleetProtocolError where error.path != "epoch" {
            throw error.inside("trust")
        }
        self.incarnation = incarnation
        for (topic, pair) in floors { set(topic, epoch: pair[0], revision: pair[1]) }
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writeMembers(to: &writer)
            writer.member("incarnation", incarnation)
        }
    }
}
