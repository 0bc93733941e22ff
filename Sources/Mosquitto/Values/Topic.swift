internal import CMosquitto
internal import Glibc

/// Checks what libmosquitto would misread (a C string ends at its first zero byte) or refuse without saying why.
enum Topic {
    static func check(_ topic: String, for purpose: String = "publishing") throws(MosquittoError) {
        try check(topic, what: "topic", purpose, by: mosquitto_pub_topic_check2)
    }

    static func check(filter: String) throws(MosquittoError) {
        try check(filter, what: "filter", "subscribing", by: mosquitto_sub_topic_check2)
    }

    private static func check(
        _ text: String, what: String, _ purpose: String, by rule: (UnsafePointer<CChar>?, Int) -> Int32
    ) throws(MosquittoError) {
        let count = text.utf8.count
        let fault: String? = text.withCString { pointer in
            if count == 0 { return "is empty" }
            if count > 65_535 { return "is longer than 65,535 bytes" }
            if strlen(pointer) != count { return "holds a zero byte" }
            if rule(pointer, count) != MOSQ_ERR_SUCCESS.rawValue { return "has a misplaced wildcard" }
            if mosquitto_validate_utf8(pointer, Int32(count)) != MOSQ_ERR_SUCCESS.rawValue {
                return "holds control characters"
            }
            return nil
        }
        if let fault {
            let shown = text.unicodeScalars.prefix(120).map { $0.escaped(asASCII: false) }.joined()
            throw MosquittoError(.invalidArgument, "\(purpose): the \(what) \"\(shown)\" \(fault)")
        }
    }
}

/// The arithmetic of MQTT packets.
enum Packet {
    /// What the four bytes of a remaining length can say.
    static let largest = 268_435_455

    /// An upper bound of a PUBLISH packet's size without properties.
    static func size(topic: Int, payload: Int) -> Int { topic + payload + 12 }
}
