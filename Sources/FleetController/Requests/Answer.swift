import FleetProtocol

/// The body of a successful answer, and where the next page begins.
struct Answer {
    let body: any JSONWritable
    let next: String?

    init(_ body: any JSONWritable, next: String? = nil) {
        self.body = body
        self.next = next
    }

    /// As ``Response`` writes it, without the detour over a tree. Throws when nobody would read one of that size.
    func response(to id: RandomID) throws -> [UInt8] {
        var writer = JSONWriter(capacity: 4_096)
        writer.object { writer in
            writer.member("v", 1)
            writer.member("id", id)
            writer.member("ok", true)
            writer.member("body", body)
            writer.member("next", ifPresent: next)
        }
        guard writer.bytes.count <= Response.maximumSize else {
            throw Response.Failure(
                .tooLarge,
                "the answer would have \(writer.bytes.count) bytes, where at most \(Response.maximumSize) are allowed:"
                    + " ask for, or change, fewer documents at a time")
        }
        return writer.bytes
    }
}

/// The rows of one page: `{"NAME":[…]}`, closed before it would grow beyond the limit.
struct Page: JSONWritable {
    let name: String
    private(set) var rows: [any JSONWritable] = []
    /// Where the next page begins, once this one is full.
    private(set) var next: String?
    private let limit: Int
    private var size = 0

    /// - Parameter limit: In bytes.
    init(_ name: String, limit: Int) {
        self.name = name
        self.limit = limit
    }

    var isFull: Bool { next != nil }

    /// Adds a row, or closes the page: then the next one begins behind `last`, the key of the row added before.
    mutating func add(_ row: any JSONWritable, behind last: String) { add([row], behind: last) }

    /// The same with rows that stay together.
    mutating func add(_ more: [any JSONWritable], behind last: String) {
        guard !isFull else { return }
        let count = more.reduce(0) { $0 + $1.json.count + 1 }
        guard rows.isEmpty || size + count <= limit - 64 else {
            next = last
            return
        }
        size += count
        rows += more
    }

    /// Ends the page here, though there is room.
    mutating func end(behind last: String) { next = next ?? last }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member(named: name) { writer in
                writer.array { writer in
                    for row in rows { row.write(to: &writer) }
                }
            }
        }
    }

    var answer: Answer { Answer(self, next: next) }
}
