import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import FleetHome

@Suite("The keys of a fleet")
struct KeyTests {
    private func trust(_ home: FleetHome) throws -> TrustDocument {
        try TrustDocument(json: home.trust().payload, limit: SignedDocument.maximumSize)
    }

    @Test("a new key signs, and the old one counts until it is withdrawn")
    func rotation() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let (old, root) = (try home.signingKey().publicKey, try home.rootKey().publicKey)
            try home.rotateSigningKey(withdrawingOthers: false)
            let new = try home.signingKey().publicKey
            #expect(new != old)
            #expect(try home.trustedKeys() == [.init(id: old.id, signs: false), .init(id: new.id, signs: true)])
            let both = try trust(home)
            #expect(both.keys == [old, new] && both.version > 1)

            let refused = #expect(throws: FleetHomeError.self) { try home.withdrawKey(new.id) }
            #expect(refused?.description.contains("key rotate --withdraw-others") == true)
            let stranger = try SigningKey().publicKey.id
            #expect(throws: FleetHomeError.self) { try home.withdrawKey(stranger) }
            #expect(try trust(home) == both)

            try home.withdrawKey(old.id)
            let one = try trust(home)
            #expect(one.keys == [new] && one.version > both.version)

            try home.rotateSigningKey(withdrawingOthers: true)
            let last = try trust(home)
            #expect(try last.keys == [home.signingKey().publicKey] && last.keys != [new] && last.version > one.version)
            #expect(try home.rootKey().publicKey == root)
            // All of it still opens, and nobody else can read the new key.
            _ = try FleetHome(opening: home.path)
            let attributes = try FileManager.default.attributesOfItem(atPath: home.path + "/keys/signing.key")
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test("when it ends half-way, the key that signs is trusted, and it can be repeated")
    func halfway() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let old = try home.signingKey().publicKey
            // The key's file cannot be replaced, whoever asks.
            let file = home.path + "/keys/signing.key"
            try FileManager.default.moveItem(atPath: file, toPath: file + ".kept")
            try FileManager.default.createDirectory(atPath: file + "/in-the-way", withIntermediateDirectories: true)
            #expect(throws: FleetHomeError.self) { try home.rotateSigningKey(withdrawingOthers: true) }
            try FileManager.default.removeItem(atPath: file)
            try FileManager.default.moveItem(atPath: file + ".kept", toPath: file)
            #expect(try FleetHome(opening: home.path).trustedKeys().contains(.init(id: old.id, signs: true)))
            try home.rotateSigningKey(withdrawingOthers: true)
            #expect(try trust(home).keys == [home.signingKey().publicKey])
        }
    }

    @Test("versions go on beyond those that a folder from a backup knows nothing of")
    func backup() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            let copy = folder.appending(path: "copy").path()
            try FileManager.default.copyItem(atPath: home.path, toPath: copy)
            for _ in 1...3 { try home.rotateSigningKey(withdrawingOthers: true) }
            let seen = try trust(home).version
            try FileManager.default.removeItem(atPath: home.path)
            try FileManager.default.moveItem(atPath: copy, toPath: home.path)
            try await until("the clock is past the last one") { Timestamp.now.milliseconds > seen }
            try home.rotateSigningKey(withdrawingOthers: true)
            #expect(try trust(home).version > seen)
        }
    }

    @Test("there are never more than devices would read")
    func many() async throws {
        try await withTemporaryFolder { folder in
            let home = try HomeTests.makeHome(in: folder)
            for _ in 1..<TrustDocument.maximumKeys { try home.rotateSigningKey(withdrawingOthers: false) }
            let before = try trust(home)
            #expect(before.keys.count == TrustDocument.maximumKeys)
            let refused = #expect(throws: FleetHomeError.self) { try home.rotateSigningKey(withdrawingOthers: false) }
            #expect(refused?.description.contains("fleetctl key withdraw") == true)
            #expect(try trust(home) == before)
            try home.withdrawKey(before.keys[0].id)
            try home.rotateSigningKey(withdrawingOthers: false)
        }
    }
}
