/// What is known of a debug code, or of a passcode, without knowing it: its scrypt hash (RFC 7914) and parameters.
package struct CodeHash: Hashable, Sendable {
    package let salt: [UInt8]
    package let hash: [UInt8]
    /// CPU and memory cost, block size, parallelism.
    package let n: Int64
    package let r: Int64
    package let p: Int64

    package init(salt: [UInt8], hash: [UInt8], n: Int64, r: Int64, p: Int64) {
        self.salt = salt
        self.hash = hash
        self.n = n
        self.r = r
        self.p = p
    }
}

extension CodeHash: JSONCodable {
    package init(from reader: inout JSONReader) throws {
        var salt: Binary?
        var hash: Binary?
        var n: Int64?
        var r: Int64?
        var p: Int64?
        var hasScrypt = false
        try reader.object { name, value in
            guard name == "scrypt" else { return }
            hasScrypt = true
            try value.object { name, value in
                switch name {
                case "salt": salt = try value.value()
                case "hash": hash = try value.value()
                case "n": n = try value.integer(in: 2...65_536)
                case "r": r = try value.integer(in: 1...8)
                case "p": p = try value.integer(in: 1...4)
                default: break
                }
            }
        }
        guard hasScrypt else { throw FleetProtocolError(.missing, "this member is missing", at: "scrypt") }
        self.init(
            salt: try required(salt, "scrypt.salt").bytes, hash: try required(hash, "scrypt.hash").bytes,
            n: try required(n, "scrypt.n"), r: try required(r, "scrypt.r"), p: try required(p, "scrypt.p"))
        guard self.n & (self.n - 1) == 0, (8...64).contains(self.salt.count), self.hash.count == 32 else {
            throw FleetProtocolError(
                .value, "expected n a power of two, a salt of 8 to 64 bytes, a hash of 32", at: "scrypt")
        }
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("scrypt") { writer in
                writer.object { writer in
                    writer.member("n", n)
                    writer.member("r", r)
                    writer.member("p", p)
                    writer.member("salt", Binary(salt))
                    writer.member("hash", Binary(hash))
                }
            }
        }
    }
}
