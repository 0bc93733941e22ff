import FleetProtocol

/// Which layers besides `all` speak to one app on one device, by aspect, in the order of precedence.
///
/// Not what they say: a document of `all` changes no class, one of a group or device only when it comes or goes.
struct OverrideClass: Hashable, Sendable {
    /// Highest precedence first; absent aspects have none.
    private(set) var layers: [Aspect: [Layer]] = [:]

    init() {}

    mutating func append(_ layer: Layer, for aspect: Aspect) { layers[aspect, default: []].append(layer) }

    /// All layers that may decide, highest precedence first.
    func chain(of aspect: Aspect) -> [Layer] { (layers[aspect] ?? []) + [.all] }

    // MARK: How it is stored: `auth=device/a,group/b dlp=group/b`, or nothing

    var key: String {
        layers.sorted { $0.key < $1.key }
            .map { aspect, layers in "\(aspect.text)=\(layers.map(\.description).joined(separator: ","))" }
            .joined(separator: " ")
    }

    init?(key: String) {
        for part in key.split(separator: " ") {
            let halves = part.split(separator: "=")
            guard halves.count == 2, let aspect = Aspect(rawValue: String(halves[0])) else { return nil }
            for text in halves[1].split(separator: ",") {
                guard let layer = try? Layer(parsing: String(text)) else { return nil }
                append(layer, for: aspect)
            }
        }
    }
}
