import FleetProtocol
import Testing

@Suite("Policies")
struct PolicyTests {
    @Test("every value has the number and the name that the app API gives it")
    func names() {
        #expect(PolicyState.wireNames == ["unsupported", "applied", "error"])
        #expect(ManagedPolicy.wireNames == ["unknown", "unmanaged", "managed"])
        #expect(AuthState.wireNames == ["unauthorized", "authorized", "retired"])
        #expect(PasteboardPolicy.wireNames == ["unauthorized", "authorized", "secureCopy"])
        #expect(OpenInPolicy.wireNames == ["unauthorized", "authorized", "whitelist"])
        #expect(OpenFromPolicy.wireNames == ["unauthorized", "authorized", "whitelist"])
        #expect(PrintPolicy.wireNames == ["unauthorized", "authorized"])
        #expect(DragAndDropPolicy.wireNames == ["notAllowed", "appConnectApps", "allApps"])
        #expect(SecureFileIOPolicy.wireNames == ["optional", "required"])
        #expect(SecureServicesAvailability.wireNames == ["unavailable", "available"])
        #expect(LogLevel.wireNames == ["error", "warning", "status", "info", "verbose", "debug"])
        func complete<Value: WireNamed>(_ type: Value.Type) {
            #expect(Value.allCases.map(\.rawValue) == Array(Value.wireNames.indices))
            for value in Value.allCases {
                // The case is called what the wire says.
                #expect(Value(wireName: value.description) == value && "\(value)" == Value.wireNames[value.rawValue])
            }
            #expect(Value(wireName: "") == nil)
        }
        complete(PolicyState.self)
        complete(ManagedPolicy.self)
        complete(AuthState.self)
        complete(AuthReason.self)
        complete(PasteboardPolicy.self)
        complete(OpenInPolicy.self)
        complete(OpenFromPolicy.self)
        complete(PrintPolicy.self)
        complete(DragAndDropPolicy.self)
        complete(SecureFileIOPolicy.self)
        complete(SecureServicesAvailability.self)
        complete(LogLevel.self)
    }

    @Test("policies count up from 0 without a gap")
    func indices() { #expect(Policy.allCases.map(\.index) == Array(0..<Policy.allCases.count)) }

    @Test("values with texts that are only written differently are not equal")
    func spelling() {
        let (apart, together) = ("e\u{301}", "\u{e9}")
        #expect(apart == together)
        #expect(PolicyValue.config(["a": apart]) != .config(["a": together]))
        #expect(PolicyValue.config([apart: "a"]) != .config([together: "a"]))
        #expect(PolicyValue.auth(.retired, message: apart) != .auth(.retired, message: together))
        #expect(PolicyValue.config([apart: together]) == .config([apart: together]))
        #expect(PolicyValue.config([apart: "a"]).hashValue == PolicyValue.config([apart: "a"]).hashValue)
    }

    @Test("a tightening takes something and gives nothing")
    func tightening() throws {
        let a = AppID(unchecked: "a")
        let b = AppID(unchecked: "b")
        let tightening: [(PolicyValue, PolicyValue)] = [
            (.auth(.authorized, message: ""), .auth(.unauthorized, message: "")),
            (.auth(.unauthorized, message: ""), .auth(.retired, message: "")),
            (.openIn(.authorized, whitelist: []), .openIn(.whitelist, whitelist: [a])),
            (.openIn(.whitelist, whitelist: [a, b]), .openIn(.whitelist, whitelist: [b])),
            (.openFrom(.whitelist, whitelist: [a]), .openFrom(.unauthorized, whitelist: [])),
            (.pasteboard(.authorized), .pasteboard(.secureCopy)),
            (.pasteboard(.secureCopy), .pasteboard(.unauthorized)),
            (.print(.authorized), .print(.unauthorized)), (.dragAndDrop(.allApps), .dragAndDrop(.appConnectApps)),
            (.dragAndDrop(.allApps), .dragAndDrop(.appConnectApps, apps: [a])),
            (.dragAndDrop(.appConnectApps, apps: [a, b]), .dragAndDrop(.appConnectApps, apps: [b])),
            (.dragAndDrop(.appConnectApps, apps: [a]), .dragAndDrop(.notAllowed)),
            (.logLevel(.debug), .logLevel(.info)),
        ]
        for (old, new) in tightening {
            #expect(new.isTightening(of: old), "\(old) to \(new)")
            #expect(!old.isTightening(of: new), "\(new) to \(old)")
            #expect(!old.isTightening(of: old))
        }
        #expect(!PolicyValue.openIn(.whitelist, whitelist: [b]).isTightening(of: .openIn(.whitelist, whitelist: [a])))
        let drag = PolicyValue.dragAndDrop(.appConnectApps, apps: [b])
        #expect(!drag.isTightening(of: .dragAndDrop(.appConnectApps, apps: [a])))
        var (limited, locked) = (SecureServicesValue(), SecureServicesValue())
        limited.offline = .init(blockAfter: 60, wipeAfter: 600)
        locked.isLocked = true
        #expect(PolicyValue.secureServices(locked).isTightening(of: .secureServices(SecureServicesValue())))
        // It locks, and lets the device be out of contact for longer.
        #expect(!PolicyValue.secureServices(locked).isTightening(of: .secureServices(limited)))
        locked.offline = .init(blockAfter: 60, wipeAfter: 500)
        #expect(PolicyValue.secureServices(locked).isTightening(of: .secureServices(limited)))
        #expect(!PolicyValue.config(["a": "1"]).isTightening(of: .config([:])))
    }

    @Test("equal configurations have equal bytes, in whatever order their names came")
    func namesInOrder() throws {
        // By `<`, the first comes neither before nor behind any of the next three.
        let names = ["e\u{301}", "é0", "é/", "é ", "b", "Z"]
        let first = Dictionary(uniqueKeysWithValues: names.map { ($0, "") })
        for _ in 0..<200 {
            var other: [String: String] = [:]
            other.reserveCapacity(Int.random(in: 1...200))
            for name in names.shuffled() { other[name] = "" }
            #expect(other.json == first.json)
        }
    }
}
