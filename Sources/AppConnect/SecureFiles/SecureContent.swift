import Crypto
import Glibc

/// What is in a secure file while it is locked. Errors name the file.
struct SecureContent {
    let file: RawFile
    private let source: FileKey
    private let key: SymmetricKey
    private let format: SecureFormat
    private(set) var size: Int64
    /// Chunks that a change which was not finished has made; they are not where they belong yet.
    private var unwritten: [Int64: [UInt8]] = [:]
    private var unfinished: SecureFormat.Change?

    /// - Parameter source: Asked for the key now, and again before anything is written or given away: others may have waited
    ///   long for the file, and the key be gone.
    init(_ file: RawFile, _ source: FileKey) throws {
        self.file = file
        self.source = source
        key = try source.current()
        let header = try file.read(SecureFormat.headerSize, at: 0)
        guard header.count == SecureFormat.headerSize, header.starts(with: SecureFormat.magic) else {
            throw SecureFileError(.badKeyOrCorruptData, "\(file.path) is no secure file")
        }
        format = SecureFormat(key, id: header[8..<SecureFormat.sizeOffset])
        let present = Array(header[SecureFormat.sizeOffset...].prefix(SecureFormat.sealedSize))
        if let change = try Self.unfinishedChange(of: file, present, format) {
            (unfinished, unwritten, size) = (change, change.chunks, change.size)
            return
        }
        do {
            size = try format.size(in: present)
        } catch {
            throw SecureFileError(
                .badKeyOrCorruptData, "\(file.path) cannot be read: it was made with another key, or has been changed")
        }
    }

    /// A change whose record is whole, behind the chunks. What else is there belongs to a change that has not begun, or to
    /// another time.
    private static func unfinishedChange(
        of file: RawFile, _ header: [UInt8], _ format: SecureFormat
    ) throws -> SecureFormat.Change? {
        let length = Int64(try file.status().st_size)
        guard length > SecureFormat.end(0) + Int64(SecureFormat.redoEnd) else { return nil }
        let ending = try file.read(SecureFormat.redoEnd, at: length - Int64(SecureFormat.redoEnd))
        guard let record = SecureFormat.redoLength(endingWith: ending),
            case let start = length - Int64(ending.count) - record, start >= SecureFormat.end(0)
        else { return nil }
        let bytes = try file.read(Int(record), at: start)
        return try? format.change(redoing: bytes, where: header)
    }

    // MARK: Reading

    func read(_ count: Int, at offset: Int64) throws -> [UInt8] {
        guard count >= 0 else { throw SecureFileError(.invalidArgument, "\(count) bytes cannot be read") }
        guard offset < size, count > 0 else { return [] }
        let end = offset + min(Int64(count), size - offset)
        var result: [UInt8] = []
        // The size is what the header says, which may be more than is there.
        result.reserveCapacity(Int(min(end - offset, Int64(SecureFormat.piece))))
        for number in Self.chunks(offset..<end) {
            let chunk = try chunk(number)
            let first = number * Int64(SecureFormat.chunkSize)
            result += chunk[Int(max(offset, first) - first)..<Int(min(end, first + Int64(chunk.count)) - first)]
        }
        try confirmKey()
        return result
    }

    func confirmKey() throws {
        guard try source.current() == key else {
            throw SecureFileError(.noKeys, "\(file.path): the key that it was opened with is gone")
        }
    }

    private static func chunks(_ range: Range<Int64>) -> Range<Int64> {
        let size = Int64(SecureFormat.chunkSize)
        return range.isEmpty ? 0..<0 : range.lowerBound / size..<(range.upperBound - 1) / size + 1
    }

    private func chunk(_ number: Int64) throws -> [UInt8] {
        let length = SecureFormat.length(of: number, in: size)
        do {
            let sealed =
                try unwritten[number]
                ?? file.read(length + SecureFormat.overhead, at: SecureFormat.offset(of: number))
            let bytes = try format.open(sealed, chunk: number)
            guard bytes.count == length else { throw SecureFormat.Damage() }
            return bytes
        } catch is SecureFormat.Damage {
            let first = number * Int64(SecureFormat.chunkSize)
            throw SecureFileError(
                .badKeyOrCorruptData,
                "\(file.path): the \(length) bytes from \(first) on have been changed by something else")
        }
    }

    // MARK: Writing

    /// Takes what is to be written, where that can be at all.
    static func bytes(_ bytes: some Collection<UInt8>) throws -> [UInt8] {
        guard bytes.count <= SecureFormat.maximumSize else { throw SecureFileError.tooBig }
        return Array(bytes)
    }

    mutating func write(_ bytes: [UInt8], at offset: Int64) throws {
        guard !bytes.isEmpty else { return }
        try check(offset, Int64(bytes.count))
        if offset > size {
            // What is between belongs to the same change, where it is small enough for one.
            let gap = Int(min(offset - size, Int64(SecureFormat.piece)))
            if gap + bytes.count <= room(at: size) {
                return try change(ArraySlice(repeating: 0, count: gap) + bytes, at: size)
            }
            try grow(to: offset)
        }
        var done = 0
        while done < bytes.count {
            let begin = offset + Int64(done)
            let count = min(bytes.count - done, room(at: begin))
            try change(bytes[done..<done + count], at: begin)
            done += count
        }
    }

    /// How much is written there in one piece, which ends where a chunk does, so that no chunk is written twice.
    private func room(at offset: Int64) -> Int { SecureFormat.piece - Int(offset % Int64(SecureFormat.chunkSize)) }

    mutating func truncate(to newSize: Int64) throws {
        try check(newSize, 0)
        guard newSize < size else { return try grow(to: newSize) }
        var chunks: [Int64: [UInt8]] = [:]
        let rest = Int(newSize % Int64(SecureFormat.chunkSize))
        if rest > 0 {
            let last = newSize / Int64(SecureFormat.chunkSize)
            chunks[last] = try format.seal(Array(chunk(last).prefix(rest)), chunk: last)
        }
        try make(SecureFormat.Change(size: newSize, header: format.header(size: newSize), chunks: chunks))
    }

    private func check(_ offset: Int64, _ count: Int64) throws {
        guard count <= SecureFormat.maximumSize, offset <= SecureFormat.maximumSize - count else {
            throw SecureFileError.tooBig
        }
    }

    /// There is no hole in a secure file: what is between is zeros that have been encrypted.
    private mutating func grow(to newSize: Int64) throws {
        try file.checkRoom(for: SecureFormat.end(newSize) - SecureFormat.end(size))
        let before = size
        do {
            while size < newSize {
                let count = Int(min(newSize - size, Int64(room(at: size))))
                try change(ArraySlice(repeating: 0, count: count), at: size)
            }
        } catch {
            try? truncate(to: before)
            throw error
        }
    }

    private mutating func change(_ bytes: ArraySlice<UInt8>, at offset: Int64) throws {
        let end = offset + Int64(bytes.count)
        let newSize = max(size, end)
        var chunks: [Int64: [UInt8]] = [:]
        for number in Self.chunks(offset..<end) {
            let first = number * Int64(SecureFormat.chunkSize)
            let isNew = first >= size || offset <= first && end >= min(first + Int64(SecureFormat.chunkSize), size)
            var plain = isNew ? [] : try chunk(number)
            let length = SecureFormat.length(of: number, in: newSize)
            plain += Array(repeating: 0, count: length - plain.count)
            let (from, to) = (max(offset, first), min(end, first + Int64(length)))
            let begin = bytes.startIndex + Int(from - offset)
            plain.replaceSubrange(Int(from - first)..<Int(to - first), with: bytes[begin..<begin + Int(to - from)])
            chunks[number] = try format.seal(plain, chunk: number)
        }
        try make(SecureFormat.Change(size: newSize, header: format.header(size: newSize), chunks: chunks))
    }

    /// Makes a change so that the file has all of it or nothing, at whatever moment this ends.
    private mutating func make(_ change: SecureFormat.Change) throws {
        try confirmKey()
        try finish()
        if let first = change.chunks.keys.min(), first < SecureFormat.chunkCount(size) {
            try orNothing {
                // Room for what is written behind the record's back: from there on nothing may fail for want of it.
                if change.size > size {
                    try file.allocate(from: SecureFormat.end(size), to: SecureFormat.end(change.size))
                }
                let header = try file.read(SecureFormat.sealedSize, at: Int64(SecureFormat.sizeOffset))
                try file.write(format.redo(change, where: header), at: SecureFormat.end(max(size, change.size)))
                try file.sync()
            }
            try perform(change)
        } else {
            // Nothing is written over but the header, which is written last.
            if !change.chunks.isEmpty {
                try orNothing {
                    try writeChunks(of: change)
                    try file.sync()
                }
            }
            try file.write(change.header, at: Int64(SecureFormat.sizeOffset))
            try file.sync()
            if change.size < size { try file.truncate(to: SecureFormat.end(change.size)) }
        }
        size = change.size
    }

    /// Finishes what a crash has left half done, and takes away what had not begun.
    private mutating func finish() throws {
        if let unfinished {
            try perform(unfinished)
            self.unfinished = nil
            unwritten = [:]
        } else if Int64(try file.status().st_size) > SecureFormat.end(size) {
            try file.truncate(to: SecureFormat.end(size))
        }
    }

    /// What it writes behind the end of the file is taken away when it throws: a disk may be full of it.
    private func orNothing(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch {
            try? file.truncate(to: SecureFormat.end(size))
            throw error
        }
    }

    private func perform(_ change: SecureFormat.Change) throws {
        try writeChunks(of: change)
        try file.write(change.header, at: Int64(SecureFormat.sizeOffset))
        try file.sync()
        try file.truncate(to: SecureFormat.end(change.size))
    }

    /// Those that follow one another at once.
    private func writeChunks(of change: SecureFormat.Change) throws {
        var (run, start, next): ([UInt8], Int64, Int64) = ([], 0, -1)
        for (number, chunk) in change.chunks.sorted(by: { $0.key < $1.key }) {
            if number != next {
                if !run.isEmpty { try file.write(run, at: SecureFormat.offset(of: start)) }
                (run, start) = ([], number)
            }
            run += chunk
            next = number + 1
        }
        if !run.isEmpty { try file.write(run, at: SecureFormat.offset(of: start)) }
    }
}

extension SecureFileError {
    fileprivate static var tooBig: SecureFileError {
        SecureFileError(.fileTooBig, "a secure file holds at most \(SecureFormat.maximumSize) bytes")
    }
}
