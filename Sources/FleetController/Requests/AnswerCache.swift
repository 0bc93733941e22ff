import FleetProtocol

/// The answers to the latest questions, and the latest refusals, at most 256 of them and 4 MB.
struct AnswerCache {
    struct Key: Hashable {
        let user: User
        let id: RandomID
    }

    private var answers: [Key: [UInt8]] = [:]
    private var order: [Key] = []
    private var size = 0

    subscript(key: Key) -> [UInt8]? { answers[key] }

    mutating func keep(_ answer: [UInt8], for key: Key) {
        guard answers.updateValue(answer, forKey: key) == nil else { return }
        order.append(key)
        size += answer.count
        while order.count > 256 || size > 4 << 20, let oldest = order.first {
            order.removeFirst()
            size -= answers.removeValue(forKey: oldest)?.count ?? 0
        }
    }
}
