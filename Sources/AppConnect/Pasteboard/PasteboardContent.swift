import Crypto
import FleetProtocol

/// What a person copies: bytes, and what they are.
public struct PasteboardContent: Hashable, Sendable, CustomStringConvertible {
    /// A media type, such as `text/plain` or `image/png`: 1 to 127 bytes.
    public let type: String
    /// At most ``maximumSize`` bytes.
    public let data: [UInt8]

    /// 128 KiB.
    public static let maximumSize = 128 * 1_024
    private static let maximumType = 127

    /// - Parameters:
    ///   - data: What is copied.
    ///   - type: Its media type.
    public init(_ data: [UInt8], type: String) {
        self.data = data
        self.type = type
    }

    /// A text, as `text/plain`.
    public init(text: String) { self.init(Array(text.utf8), type: "text/plain") }

    /// The text, where it is one: of a type that begins with `text/`, in UTF-8.
    public var text: String? { type.hasPrefix("text/") ? String(validating: data, as: UTF8.self) : nil }

    /// `text/plain, 9 bytes`: not the content, which is not for logs.
    public var description: String { "\(Text.printable(type, limit: Self.maximumType)), \(data.count) bytes" }

    /// As it passes over the link: the type, a zero byte, the data.
    package func encoded() throws(AppConnectError) -> [UInt8] {
        guard data.count <= Self.maximumSize else {
            throw AppConnectError(
                .invalidContent, "\(data.count) bytes are to be copied, where at most \(Self.maximumSize) can be")
        }
        let type = Array(self.type.utf8)
        guard (1...Self.maximumType).contains(type.count), !type.contains(0) else {
            throw AppConnectError(
                .invalidContent,
                "the type of what is to be copied has \(type.count) bytes: expected 1 to \(Self.maximumType), none of"
                    + " them zero")
        }
        return type + [0] + data
    }

    /// nil for bytes that ``encoded()`` does not make.
    package init?(encoded bytes: [UInt8]) {
        guard let end = bytes.firstIndex(of: 0), (1...Self.maximumType).contains(end),
            bytes.count - end - 1 <= Self.maximumSize,
            let type = String(validating: bytes[..<end], as: UTF8.self)
        else { return nil }
        self.init(Array(bytes[(end + 1)...]), type: type)
    }
}

extension AppKeys {
    /// For whoever has the secret that the device's apps share: with AES-256-GCM, as 12 random bytes, the ciphertext, the tag of 16.
    func sealed(_ content: [UInt8]) throws(SecureFileError) -> PasteboardItem {
        do {
            guard let sealed = try AES.GCM.seal(content, using: pasteboardKey).combined else {
                throw SecureFileError(.internal, "what is to be copied could not be encrypted")
            }
            return PasteboardItem(Array(sealed), isSecured: true)
        } catch let error as SecureFileError {
            throw error
        } catch {
            throw SecureFileError(.internal, "what is to be copied could not be encrypted: \(error)")
        }
    }

    /// nil for what was not encrypted with this secret.
    func opened(_ item: PasteboardItem) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: item.content),
            let bytes = try? AES.GCM.open(box, using: pasteboardKey)
        else { return nil }
        return Array(bytes)
    }
}
