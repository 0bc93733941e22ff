import FleetProtocol
import Yams

/// The changes that some policy files ask for; made only when every file is right as a whole.
struct PolicyFile {
    /// One aspect of one document.
    struct Entry: Hashable {
        let change: ApplyRequest.Change
        let place: Mistake.Place
    }

    private(set) var entries: [Entry] = []
    /// What is allowed but may not be meant.
    private(set) var warnings: [Mistake] = []
    /// When it is read.
    private let now: Timestamp

    var changes: [ApplyRequest.Change] { entries.map(\.change) }
    var selectors: [DocumentSelector] {
        changes.map { DocumentSelector(app: $0.app, layer: $0.layer, aspect: $0.aspect) }
    }

    /// Everything that is wrong, in all files, in the order of the text.
    struct Mistakes: Error, CustomStringConvertible {
        let mistakes: [Mistake]
        var description: String { mistakes.map(\.description).joined(separator: "\n") }
    }

    /// What stands around a value in its signed document, generously.
    private static let envelope = 2 * 1_024

    init(_ sources: [(name: String, bytes: [UInt8])], at now: Timestamp = .now) throws {
        self.now = now
        var mistakes: [Mistake] = []
        for source in sources { mistakes += read(source.bytes, name: source.name) }
        var seen: [DocumentSelector: Mistake.Place] = [:]
        for (entry, selector) in zip(entries, selectors) {
            if let earlier = seen[selector] {
                mistakes.append(
                    Mistake(
                        place: entry.place,
                        message:
                            "\(selector.aspect?.text ?? "") of \(selector.app) for \(selector.layer) already stands at \(earlier)"
                    ))
            } else {
                seen[selector] = entry.place
            }
        }
        guard mistakes.isEmpty else { throw Mistakes(mistakes: mistakes.sorted()) }
    }

    private mutating func read(_ bytes: [UInt8], name: String) -> [Mistake] {
        let source = YAMLSource(bytes, name: name)
        var walk = NodeWalk(file: name, hasHiddenKeys: !source.mistakes.isEmpty)
        // An empty document between two `---`, or behind the last, is nothing to speak of.
        let roots = source.roots.filter { root in
            if case .scalar(let scalar) = root, scalar.string.isEmpty, scalar.style == .plain { return false }
            return true
        }
        for root in roots { document(root, &walk) }
        if roots.isEmpty, source.mistakes.isEmpty {
            return [Mistake(place: .init(file: name, line: 1, column: 1), message: "the file holds no policy document")]
        }
        return source.mistakes + walk.mistakes
    }

    private mutating func document(_ root: Node, _ walk: inout NodeWalk) {
        guard let members = walk.members(root, "", known: ["apiVersion", "kind", "metadata", "spec"]) else { return }
        for (name, word) in [("apiVersion", "fleetbus/v1"), ("kind", "AppPolicy")] {
            if let node = members[name]?.value {
                _ = walk.choice(node, [word], name)
            } else {
                walk.mistake(at: root, "", "'\(name)' is missing: expected '\(name): \(word)'")
            }
        }
        let (app, layer) = metadata(members["metadata"]?.value, root, &walk)
        guard let spec = members["spec"]?.value else {
            walk.mistake(at: root, "", "'spec' is missing")
            return
        }
        guard let aspects = walk.members(spec, "spec", known: Aspect.allCases.map(\.text)) else { return }
        if aspects.isEmpty, walk.mistakes.isEmpty {
            walk.mistake(
                at: spec, "spec",
                "names no aspect: expected at least one of " + Aspect.allCases.map(\.text).joined(separator: ", "))
        }
        for aspect in Aspect.allCases {
            guard let (key, node) = aspects[aspect.text], let desired = value(of: aspect, node, &walk), let app,
                let layer
            else { continue }
            let place = walk.place(key)
            entries.append(
                Entry(change: ApplyRequest.Change(app: app, layer: layer, aspect: aspect, value: desired), place: place)
            )
            warn(about: desired, node, app, layer, place)
        }
    }

    private func metadata(_ node: Node?, _ root: Node, _ walk: inout NodeWalk) -> (AppID?, Layer?) {
        guard let node else {
            walk.mistake(at: root, "", "'metadata' is missing: expected 'metadata: {app: …, target: …}'")
            return (nil, nil)
        }
        guard let members = walk.members(node, "metadata", known: ["app", "target"]) else { return (nil, nil) }
        for name in ["app", "target"] where members[name] == nil {
            walk.mistake(at: node, "metadata", "'\(name)' is missing")
        }
        let app: AppID? = members["app"].flatMap { member in
            walk.text(member.value, "metadata.app").flatMap { text in
                walk.attempt(member.value, "metadata.app") { try AppID(checking: text) }
            }
        }
        let layer: Layer? = members["target"].flatMap { member in
            walk.text(member.value, "metadata.target").flatMap { text in
                walk.attempt(member.value, "metadata.target") { try Layer(parsing: text) }
            }
        }
        return (app, layer)
    }

    private func value(of aspect: Aspect, _ node: Node, _ walk: inout NodeWalk) -> DesiredValue? {
        let path = "spec.\(aspect.text)"
        let before = walk.mistakes.count
        guard var json = walk.value(node, .value(of: aspect), path) else { return nil }
        if aspect == .dlp {
            for name in ["openIn", "openFrom"] { checkOpening(json[name], node, "\(path).\(name)", &walk) }
        }
        if aspect == .config { json = .object(["values": json]) }
        guard walk.mistakes.count == before else { return nil }
        var wire = JSONWriter()
        wire.value(utf8: json.json)
        guard wire.bytes.count <= SignedDocument.maximumSize - Self.envelope else {
            walk.mistake(
                at: node, path,
                "\(wire.bytes.count) bytes, where at most \(SignedDocument.maximumSize - Self.envelope) are allowed")
            return nil
        }
        // The rules of the bus have the last word.
        return walk.attempt(node, path) {
            let bytes = json.json
            let desired = try JSONReader.read(bytes, limit: bytes.count) { try DesiredValue(of: aspect, from: &$0) }
            if let problem = desired.problems.sorted(by: { $0.key < $1.key }).first {
                throw FleetProtocolError(.value, problem.value)
            }
            return desired
        }
    }

    private func checkOpening(_ json: JSONValue?, _ node: Node, _ path: String, _ walk: inout NodeWalk) {
        guard let json, let policy = json["policy"]?.stringValue else { return }
        let place =
            node.mapping?.first { $0.key.string == path.split(separator: ".").last.map(String.init) }?.value ?? node
        if policy == "whitelist", json["apps"] == nil {
            walk.mistake(at: place, path, "a whitelist needs 'apps'")
        } else if policy != "whitelist", json["apps"] != nil {
            walk.mistake(at: place, path, "'apps' stands only with policy whitelist")
        }
    }

    private mutating func warn(
        about desired: DesiredValue, _ node: Node, _ app: AppID, _ layer: Layer, _ place: Mistake.Place
    ) {
        func warn(_ message: String) { warnings.append(Mistake(place: place, message: message)) }
        switch desired.content {
        case .auth(.retired, _):
            warn(
                "retires \(app) for \(layer): its keys there are destroyed, and no other layer shields a device from it"
            )
        case .dlp:
            let given = Set(node.mapping?.compactMap { $0.key.string } ?? [])
            let absent = ["openIn", "openFrom", "pasteboard", "print", "dragAndDrop"].filter { !given.contains($0) }
            if !absent.isEmpty {
                warn("dlp of \(app) for \(layer) says nothing about \(absent.joined(separator: ", ")): not allowed")
            }
        // What is short of an offline limit the controller says.
        case .secureServices(let value):
            var idle = value.passcode?.isRequired == true || value.autoLock == nil ? [] : ["autoLock"]
            if let passcode = value.passcode, !passcode.isRequired {
                let rules = [
                    ("minLength", passcode.minLength != nil), ("classes", passcode.classes != nil),
                    ("maxAttempts", passcode.maxAttempts != nil), ("then", passcode.then != nil),
                ]
                idle += rules.filter(\.1).map { "passcode.\($0.0)" }
            }
            if !idle.isEmpty {
                let verb = idle.count == 1 ? "does" : "do"
                warn(
                    "secure-services of \(app) for \(layer): \(idle.joined(separator: ", ")) \(verb) nothing where no passcode"
                        + " is required")
            }
            if let passcode = value.passcode, passcode.isRequired, passcode.then != nil, passcode.maxAttempts == nil {
                warn("secure-services of \(app) for \(layer): passcode.then does nothing without maxAttempts")
            }
        case .logLevel(let wish):
            if let end = wish.notAfter, end <= now {
                warn("log-level of \(app) for \(layer): its notAfter \(end) is over, so it does nothing")
            }
        case .auth, .config, .unreadable: break
        }
    }
}
