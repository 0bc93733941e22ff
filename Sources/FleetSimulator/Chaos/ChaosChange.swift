import FleetProtocol

/// One change that an operator asked for, and what fleetctl answered.
struct ChaosChange {
    /// A document's place.
    struct Key: Hashable, CustomStringConvertible {
        let app: AppID
        let layer: Layer
        let aspect: Aspect

        var description: String { "\(aspect.text) of \(app) for \(layer)" }
    }

    /// A document as an operator wrote it. Its tag is in no other, and shows in what apps print, where it can.
    struct Document: Hashable {
        let key: Key
        let tag: String
        /// What stands below the aspect's name in a policy file.
        let value: JSONValue
    }

    enum Kind {
        case apply([Document], isAgain: Bool)
        case delete(AppID, Layer, Aspect?)
        case group(GroupID, ChaosGroup)
        case groupDelete(GroupID)
    }

    enum Answer {
        /// With what fleetctl printed.
        case accepted(JSONValue?)
        case refused(String)
        /// Nobody can say whether it was made.
        case unknown(String)
    }

    let number: Int
    let kind: Kind
    var answer: Answer?

    /// What the history is told as the reason, by which a change is found there.
    var why: String { "chaos-\(number)" }

    var arguments: [String] {
        switch kind {
        case .apply(_, let isAgain): ["apply", "--why", why, "-o", "json"] + (isAgain ? ["--again"] : [])
        case .delete(let app, let layer, let aspect):
            ["delete", app.text, "--target", "\(layer)", "--why", why, "-o", "json"]
                + (aspect.map { ["--aspect", $0.text] } ?? [])
        case .group(let group, let wish):
            [
                "group", "set", group.text, "--priority", "\(wish.priority)", "--devices",
                wish.devices.map(\.text).joined(separator: ","), "--why", why,
            ]
        case .groupDelete(let group): ["group", "delete", group.text, "--why", why]
        }
    }

    /// The policy file of an `apply`.
    var file: String? {
        guard case .apply(let documents, _) = kind else { return nil }
        return documents.map { document in
            JSONValue.object([
                "apiVersion": "fleetbus/v1", "kind": "AppPolicy",
                "metadata": .object([
                    "app": .string(document.key.app.text), "target": .string("\(document.key.layer)"),
                ]),
                "spec": .object([JSONValue.Member(document.key.aspect.text, document.value)]),
            ]).jsonText
        }.joined(separator: "\n---\n") + "\n"
    }

    func document(at key: Key) -> Document? {
        guard case .apply(let documents, _) = kind else { return nil }
        return documents.first { $0.key == key }
    }

    var story: String {
        switch kind {
        case .apply(let documents, let isAgain):
            "apply\(isAgain ? " again" : ""): "
                + documents.map { "\($0.key) = \($0.value.jsonText)" }
                .joined(separator: "; ")
        case .delete(let app, let layer, let aspect): "delete \(aspect?.text ?? "all") of \(app) for \(layer)"
        case .group(let group, let wish):
            "group \(group): priority \(wish.priority), \(wish.devices.map(\.text).joined(separator: " "))"
        case .groupDelete(let group): "delete group \(group)"
        }
    }
}

/// What a group is to be.
struct ChaosGroup: Hashable {
    let priority: Int64
    let devices: [DeviceID]
}
