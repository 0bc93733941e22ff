import FleetProtocol

/// What a newer controller would write, of which an agent knows only a part: some values of these worlds are made such
/// before an older agent reads them, the same bytes each time.
struct OlderReader {
    private let keys: [KeyID: SigningKey]

    init(_ fleet: SimulatedFleet) {
        keys = Dictionary([fleet.signingKey, fleet.nextKey].map { ($0.publicKey.id, $0) }) { $1 }
    }

    private static func newer(_ aspect: Aspect) -> (known: String, unknown: String) {
        switch aspect {
        case .auth: (#""message":"Ask 4.""#, #""message":"Ask 4.","state":"suspended""#)
        case .dlp: (#""pasteboard":"secureCopy""#, #""pasteboard":"someday""#)
        case .config: (#""server":"5""#, #""server":[5]"#)
        case .secureServices: (#""locked":true"#, #""locked":"partly""#)
        case .logLevel: (#""level":"info""#, #""level":"trace""#)
        }
    }

    /// Whether it says of an aspect what an older agent does not know.
    static func isUnreadable(_ signed: SignedDocument, _ aspect: Aspect) -> Bool {
        String(decoding: signed.payload, as: UTF8.self).contains(newer(aspect).unknown)
    }

    func read(_ wire: [UInt8], at address: Address) -> [UInt8] {
        guard case .desired(_, _, let aspect) = address, let signed = try? SignedDocument(wire: wire),
            let key = keys[signed.keyID]
        else { return wire }
        var text = String(decoding: signed.payload, as: UTF8.self)
        let (known, unknown) = Self.newer(aspect)
        guard text.contains(known) else { return wire }
        if aspect == .auth { text = text.replacing(#""state":"unauthorized","#, with: "") }
        text = text.replacing(known, with: unknown)
        return (try? SignedDocument(signing: Array(text.utf8), as: .desired, with: key).wire) ?? wire
    }
}
