import AppConnect
import Dispatch
import FleetProtocol
import Glibc
import Logging

/// Standard output: one JSON object a line, written whole and at once.
enum Output {
    private static let queue = DispatchQueue(label: "output")

    /// `{"event":"…", …}`
    static func write(_ event: String, _ members: KeyValuePairs<String, JSONValue?> = [:]) {
        queue.sync { print(event, members) }
    }

    private static func print(_ event: String, _ members: KeyValuePairs<String, JSONValue?>) {
        var all = [JSONValue.Member("event", .string(event))]
        for (name, value) in members { if let value { all.append(JSONValue.Member(name, value)) } }
        var rest = (JSONValue.object(all).json + [UInt8(ascii: "\n")])[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count <= 0, errno != EINTR { return }
            rest = rest.dropFirst(max(0, count))
        }
    }

    static func write(connection state: ConnectionState) {
        switch state {
        case .connected(let device, let agent):
            write("connection", ["state": "connected", "device": .string(device), "agent": .string(agent)])
        case .disconnected(let error):
            write(
                "connection",
                ["state": "disconnected", "code": .string(error.name), "message": .string(error.message)])
        }
    }

    static func write(pasted content: PasteboardContent?) {
        write("pasted", ["type": content.map { .string($0.type) }, "text": content?.text.map { .string($0) }])
    }

    static func write(error: any Error) {
        if let error = error as? AppConnectError {
            write("error", ["code": .string(error.name), "message": .string(error.message)])
        } else if let error = error as? SecureFileError {
            write("error", ["code": .string("\(error.code)"), "message": .string(error.message)])
        } else {
            write("error", ["code": "input", "message": .string("\(error)")])
        }
    }

    /// Reads them and writes them at once: what a callback says of a later value comes behind them.
    static func write(propertiesOf app: AppConnect) {
        do {
            try queue.sync {
                print(
                    "properties",
                    [
                        "isReady": .bool(app.isReady), "managedPolicy": .name(try app.managedPolicy),
                        "authState": .name(try app.authState), "authMessage": .string(try app.authMessage),
                        "authReason": .name(try app.authReason), "pasteboardPolicy": .name(try app.pasteboardPolicy),
                        "openInPolicy": .name(try app.openInPolicy), "openInWhitelist": .apps(try app.openInWhitelist),
                        "openFromPolicy": .name(try app.openFromPolicy),
                        "openFromWhitelist": .apps(try app.openFromWhitelist),
                        "printPolicy": .name(try app.printPolicy),
                        "secureFileIOPolicy": .name(try app.secureFileIOPolicy), "config": .texts(try app.config),
                        "secureServicesAvailability": .name(app.secureServicesAvailability),
                        "logLevel": .name(app.logLevel),
                    ])
            }
        } catch {
            write(error: error)
        }
    }
}

extension JSONValue {
    static func name(_ value: some WireNamed) -> JSONValue { .string(value.description) }
    static func apps(_ apps: Set<AppID>) -> JSONValue { .array(apps.sorted().map { .string($0.text) }) }

    static func texts(_ values: [String: String]) -> JSONValue {
        .object(values.sorted { $0.key < $1.key }.map { Member($0.key, .string($0.value)) })
    }
}

/// What the app and the library log, as lines like all others.
struct JSONLineHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        Output.write("log", ["level": .string(event.level.rawValue), "message": .string(event.message.description)])
    }
}
