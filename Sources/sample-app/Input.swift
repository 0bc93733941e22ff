import AppConnect
import FleetProtocol

/// The commands on standard input, one a line.
enum Input {
    static let usage = [
        "  copy [TEXT]                   copy TEXT; without it, ask whether one may",
        "  paste                         print what was copied last",
        "  open-in APP                   … a document go to APP",
        "  open-url URL [APP]            … a URL be handed out",
        "  open-from APP                 … a document come from APP",
        "  print                         … something be printed",
        "  drag APP                      … something be dragged to APP",
        "  properties                    print all properties",
        "  display TEXT                  show a text to the person at the device",
        "  retire                        retire the app",
        "  use                           say that a person uses it: it stays unlocked",
        "  write FILE TEXT               write a secure file",
        "  read FILE                     print what is in a secure file",
        "  log LEVEL TEXT                log a message",
        "  ack POLICY STATE [MESSAGE]    acknowledge (again)",
        "  stop                          end AppConnect, not the process",
        "  quit                          end",
    ]

    static func perform(_ line: String, in app: AppConnect, _ sample: SampleApp) {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard let command = words.first else { return }
        let rest = words.count > 1 ? words[1] : ""
        do {
            switch command {
            case "copy" where rest.isEmpty: request("copy", try app.requestCopy())
            case "copy":
                later { Output.write("copied", ["ok": .bool(try await app.copy(PasteboardContent(text: rest)))]) }
            case "paste": later { Output.write(pasted: try await app.paste()) }
            case "open-in": request("openIn", try app.requestOpenIn(try AppID(checking: rest)))
            case "open-url":
                let parts = rest.split(separator: " ", maxSplits: 1).map(String.init)
                let target = try parts.count > 1 ? AppID(checking: parts[1]) : nil
                request("openURL", try app.requestOpenURL(parts.first ?? "", in: target))
            case "open-from": request("openFrom", try app.requestOpenFrom(try AppID(checking: rest)))
            case "print": request("print", try app.requestPrint())
            case "drag": request("dragAndDrop", try app.requestDragAndDrop(to: try AppID(checking: rest)))
            case "properties": Output.write(propertiesOf: app)
            case "display":
                later { Output.write("displayed", ["ok": .bool(await app.displayMessage(rest))]) }
            case "retire":
                try app.retire()
                Output.write("retired")
            case "use": app.noteUse()
            case "write": try write(rest, in: app)
            case "read":
                let bytes = try app.files.contents(of: rest)
                Output.write("read", ["text": .string(String(decoding: bytes, as: UTF8.self))])
            case "log": try log(rest, in: app)
            case "ack": try acknowledge(rest, in: app, sample)
            case "stop":
                app.stop()
                Output.write("stopped")
            case "quit": Command.end()
            default: unknown(command)
            }
        } catch {
            Output.write(error: error)
        }
    }

    /// Nobody waits for it: its line comes when the answer does.
    private static func later(_ action: @escaping @Sendable () async throws -> Void) {
        Task {
            do { try await action() } catch { Output.write(error: error) }
        }
    }

    private static func request(_ action: String, _ isAllowed: Bool) {
        Output.write("request", ["action": .string(action), "allowed": .bool(isAllowed)])
    }

    private static func write(_ text: String, in app: AppConnect) throws {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        guard words.count == 2 else { throw InputError("expected write FILE TEXT") }
        try app.files.write(words[1].utf8, to: words[0])
        Output.write("written", ["file": .string(words[0])])
    }

    private static func log(_ text: String, in app: AppConnect) throws {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        guard let level = words.first.flatMap(LogLevel.init(wireName:)) else {
            throw InputError(
                "expected log LEVEL TEXT, where LEVEL is one of " + LogLevel.wireNames.joined(separator: ", "))
        }
        app.log(level, words.count > 1 ? words[1] : "")
    }

    private static func acknowledge(_ text: String, in app: AppConnect, _ sample: SampleApp) throws {
        let words = text.split(separator: " ", maxSplits: 2).map(String.init)
        guard words.count >= 2, let policy = Policy(rawValue: words[0]), policy.isAcknowledgedByApp,
            let state = PolicyState(wireName: words[1])
        else {
            let policies = Policy.allCases.filter(\.isAcknowledgedByApp).map(\.rawValue).joined(separator: ", ")
            throw InputError(
                "expected ack POLICY STATE [MESSAGE], where POLICY is one of \(policies), and STATE of "
                    + PolicyState.wireNames.joined(separator: ", "))
        }
        sample.acknowledge(policy, state, words.count > 2 ? words[2] : nil, in: app)
    }

    private static func unknown(_ command: String) {
        let commands = usage.map { String($0.drop { $0 == " " }.prefix { $0 != " " }) }
        Output.write(
            "error",
            [
                "code": "input", "message": .string("unknown command '\(Text.printable(command, limit: 40))'"),
                "commands": .array(commands.map { .string($0) }),
            ])
    }
}

/// A line of the input that is no command.
struct InputError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
