import Dispatch
import Glibc
import Mosquitto

/// The revision of a desired document on the wire, found without reading the document: the load counts what arrives in
/// a way that has nothing to do with how the core reads it.
enum DesiredRevision {
    private static let mark = Array("\\\"revision\\\":".utf8)

    static func find(in message: Message) -> Int64? {
        // fleet/v1/FLEET/desired/…
        let isDesired = message.topic.utf8.withContiguousStorageIfAvailable { topic in
            var slashes = 0
            for (index, byte) in topic.enumerated() where byte == UInt8(ascii: "/") {
                slashes += 1
                if slashes == 3 { return topic[(index + 1)...].starts(with: "desired/".utf8) }
            }
            return false
        }
        guard isDesired ?? false else { return nil }
        return message.payload.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return nil }
            // The member stands near the beginning; a backslash before it, since the payload is a string in a string.
            var passed = 0
            while let next = memchr(start + passed, Int32(UInt8(ascii: "\\")), bytes.count - passed) {
                passed = UnsafeRawPointer(next) - start
                if bytes.count - passed > mark.count, memcmp(next, mark, mark.count) == 0 {
                    return number(bytes[(passed + mark.count)...])
                }
                passed += 1
            }
            return nil
        }
    }

    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int64 {
        var number: Int64 = 0
        for byte in digits.prefix(16) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { break }
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        return number
    }
}

/// Monotonic time in nanoseconds.
enum Clock {
    static func now() -> UInt64 { DispatchTime.now().uptimeNanoseconds }
}
