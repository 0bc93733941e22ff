import FleetProtocol

/// Devices follow the documents of one change as they are numbered: what lets an app in comes last, and so does the end of what
/// keeps it out.
extension DesiredModel {
    /// What is wrong with the revisions of what was applied.
    static func problem(inOrderOf results: [ChangeResult], of changes: [ApplyRequest.Change]) -> String? {
        let changed = zip(changes, results).filter(\.1.isChanged)
        for (change, result) in changed where change.authorizes == true {
            let isLate = changed.contains { other, its in
                guard other.app == change.app else { return false }
                return other.aspect == .auth
                    ? other.authorizes == false && its.revision < result.revision : its.revision > result.revision
            }
            if isLate { return "\(change.app) is let in before the rest is said: \(results)" }
        }
        return nil
    }

    /// What is wrong with the revisions of what was deleted.
    ///
    /// - Parameter keepingOut: Where it was said that an app is not authorized.
    static func problem(inOrderOf results: [ChangeResult], keepingOut: Set<Address>) -> String? {
        func revisions(_ isKeptOut: Bool) -> [Int64] {
            results.filter { keepingOut.contains(.desired($0.layer, $0.app, $0.aspect)) == isKeptOut }.map(\.revision)
        }
        guard let first = revisions(true).min(), let last = revisions(false).max(), first < last else { return nil }
        return "an app is let in before the rest is deleted: \(results)"
    }

    /// Which live documents keep an app out.
    func keepsOut(_ address: Address) -> Bool {
        guard case .desired(_, _, .auth) = address, let value = values[address] else { return false }
        return !value.contains(#""authorized""#)
    }
}

extension ApplyRequest.Change {
    /// Whether it authorizes its app, or says that it is not authorized; nil where it says neither.
    fileprivate var authorizes: Bool? {
        guard case .auth(let state, _) = value.content else { return nil }
        switch state {
        case .authorized: return true
        case .unauthorized: return false
        case .retired: return nil
        }
    }
}
