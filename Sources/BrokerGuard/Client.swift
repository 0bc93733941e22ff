import FleetProtocol

/// Who asks the broker for something: bytes that the caller keeps alive for the call.
package struct Client {
    let user: UnsafeBufferPointer<UInt8>
    let id: UnsafeBufferPointer<UInt8>

    /// - Parameters:
    ///   - user: The user name, which the broker has verified.
    ///   - id: The client id, which anybody may choose.
    package init(user: UnsafeBufferPointer<UInt8>, id: UnsafeBufferPointer<UInt8>) {
        self.user = user
        self.id = id
    }

    /// For the log: what clients choose is bounded, and stripped of control characters.
    package var description: String {
        func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
            Text.printable(String(decoding: bytes, as: UTF8.self), limit: 100)
        }
        let name = user.isEmpty ? "a client without a name" : text(user)
        return id.elementsEqual(user) ? name : "\(name) (client id \(text(id)))"
    }

    /// Nil for a user name that is none of the fleet's.
    var role: Access.Role? {
        guard let first = user.first else { return nil }
        guard first == UInt8(ascii: "@") else { return DeviceID.isID(user) ? .device : nil }
        if user.isEqual("@controller") { return .controller }
        if user.isIdentifier(behind: "@operator.") { return .operator }
        if user.isIdentifier(behind: "@viewer.") { return .viewer }
        if user.isIdentifier(behind: "@bridge.") { return .bridge }
        return nil
    }

    /// Whether the client id is the user's own: its name, and for people something behind a `~`, since one person runs
    /// several commands. Who could take another's client id could throw that one off.
    func hasOwnID(_ role: Access.Role) -> Bool {
        guard id.count >= user.count else { return false }
        for index in 0..<user.count where id[index] != user[index] { return false }
        switch role {
        case .device, .controller, .bridge: return id.count == user.count
        case .operator, .viewer: return id.count == user.count || id[user.count] == UInt8(ascii: "~")
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    func isEqual(_ text: StaticString) -> Bool { count == text.utf8CodeUnitCount && begins(with: text) }

    func begins(with text: StaticString) -> Bool {
        guard count >= text.utf8CodeUnitCount else { return false }
        for index in 0..<text.utf8CodeUnitCount where self[index] != text.utf8Start[index] { return false }
        return true
    }

    func ends(with text: StaticString) -> Bool {
        let start = count - text.utf8CodeUnitCount
        return start >= 0 && UnsafeBufferPointer(rebasing: self[start...]).begins(with: text)
    }

    func isIdentifier(behind prefix: StaticString) -> Bool {
        begins(with: prefix) && isIdentifier(from: prefix.utf8CodeUnitCount)
    }

    /// Whether an id stands from there to the end.
    private func isIdentifier(from start: Int) -> Bool { DeviceID.isID(UnsafeBufferPointer(rebasing: self[start...])) }
}
