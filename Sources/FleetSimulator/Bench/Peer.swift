import Dispatch
import FleetProtocol
import Foundation
import Glibc

/// The clients of a measurement in a process of their own, as fleets are: `fleet-sim` again, which is asked by lines and
/// answers each with a line of JSON.
final class Peer: Sendable {
    let child: Child
    var pid: pid_t { child.pid }

    /// Starts `fleet-sim` with these arguments, and waits for its first line.
    static func start(_ arguments: [String], in folder: String) async throws -> (peer: Peer, first: JSONValue) {
        let child = try Child("/proc/self/exe".resolved, arguments, in: folder, isSpokenTo: true)
        let peer = Peer(child)
        do {
            return (peer, try await peer.line(within: .seconds(600)))
        } catch {
            await child.end()
            throw error
        }
    }

    private init(_ child: Child) {
        self.child = child
    }

    func ask(_ question: String, within patience: Duration = .seconds(60)) async throws -> JSONValue {
        child.send(line: question)
        return try await line(within: patience)
    }

    /// Asks for the progress until `condition` holds of it.
    @discardableResult
    func wait(
        for what: String, within patience: Duration, _ condition: (JSONValue) -> Bool
    ) async throws -> JSONValue {
        let deadline = ContinuousClock.now + patience
        while true {
            let progress = try await ask("progress")
            if condition(progress) { return progress }
            guard ContinuousClock.now < deadline else {
                let counters = try await ask("counters")
                throw LoadError("\(what): not within \(patience): \(counters.jsonText)")
            }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private func line(within patience: Duration) async throws -> JSONValue {
        let deadline = ContinuousClock.now + patience
        guard let output = child.output else { throw LoadError("nothing is read of this process") }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while bytes.last != UInt8(ascii: "\n") {
            let count = read(output, &buffer, buffer.count)
            if count > 0 {
                bytes += buffer[..<count]
            } else if count < 0, errno == EAGAIN || errno == EINTR {
                guard ContinuousClock.now < deadline else { throw LoadError("fleet-sim did not answer") }
                try await Task.sleep(for: .microseconds(200))
            } else {
                try child.check()
                throw LoadError("a process of the bench has closed its output")
            }
        }
        return try JSONValue(json: Array(bytes.dropLast()), limit: bytes.count)
    }

    // MARK: The other side

    /// Answers each line of standard input, until it ends.
    static func serve(_ first: JSONValue, _ answer: (String) async throws -> JSONValue) async throws {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        DispatchQueue(label: "fleet-sim-questions").async {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        say(first)
        for await line in lines { say(try await answer(line)) }
    }

    private static func say(_ value: JSONValue) {
        let bytes = Array((value.jsonText + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}

extension String {
    fileprivate var resolved: String { URL(fileURLWithPath: self).resolvingSymlinksInPath().path }
}

extension JSONValue {
    func count(_ name: String) -> Int { Int(self[name]?.integerValue ?? 0) }
}
