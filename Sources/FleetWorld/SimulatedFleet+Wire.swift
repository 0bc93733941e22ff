import FleetProtocol

/// What laws read, whoever has signed it.
extension DesiredDocument {
    init(wire: [UInt8]) throws {
        try self.init(payload: SignedDocument(wire: wire).payload, in: SimulatedFleet.id)
    }
}

extension Hello {
    init(wire: [UInt8]) throws {
        try self.init(json: SignedDocument(wire: wire).payload, limit: SignedDocument.maximumSize)
    }
}
