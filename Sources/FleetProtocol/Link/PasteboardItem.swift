/// What has been copied, as it passes over the link.
package struct PasteboardItem: Hashable, Sendable, CustomStringConvertible {
    /// The content itself, or, where it is secured, its encrypted form.
    package var content: [UInt8]
    /// Only who has the secret that all authorized apps of the device share can read it.
    package var isSecured: Bool

    package init(_ content: [UInt8], isSecured: Bool) {
        self.content = content
        self.isSecured = isSecured
    }

    package var description: String { "\(content.count) bytes, \(isSecured ? "secured" : "for everybody")" }

    /// Bytes of the content: so that it has its place in a line.
    package static let maximumSize = 160 * 1_024

    /// `{"content":"…","secured":true}`, among the members of a frame.
    struct Members {
        private var content: Binary?
        private var isSecured: Bool?

        mutating func read(_ name: Word, _ value: inout JSONReader) throws {
            switch name {
            case "content":
                let binary = try Binary(from: &value)
                guard binary.bytes.count <= PasteboardItem.maximumSize else {
                    throw FleetProtocolError(
                        .tooLarge,
                        "\(binary.bytes.count) bytes, where at most \(PasteboardItem.maximumSize) are allowed")
                }
                content = binary
            case "secured": isSecured = try value.bool()
            default: break
            }
        }

        /// nil where there is no content.
        func item() throws -> PasteboardItem? {
            guard let content else { return nil }
            return PasteboardItem(content.bytes, isSecured: try required(isSecured, "secured"))
        }
    }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("content", Binary(content))
        writer.member("secured", isSecured)
    }
}
