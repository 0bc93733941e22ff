import Foundation
import TestSupport
import Testing

@testable import AppConnect

@Suite("The app's end of the link")
struct UnixSocketTests {
    /// Swift does not want it to be called.
    private typealias Fork = @convention(c) () -> pid_t

    @Test("does not stay open in a child of fork that goes on")
    func forked() async throws {
        try await withTemporaryFolder { folder in
            let agent = try ScriptedAgent(at: folder.appending(path: "agent.sock").path)
            guard let symbol = dlsym(nil, "fork") else { throw TestFailure("there is no fork") }
            let child = try Self.connect(to: agent.path, then: unsafeBitCast(symbol, to: Fork.self))
            defer {
                kill(child, SIGKILL)
                waitpid(child, nil, 0)
            }
            #expect(try agent.accept().next() == nil)
        }
    }

    /// Connects, calls it, and lets the connection go.
    private static func connect(to path: String, then fork: Fork) throws -> pid_t {
        let socket = try UnixSocket(connectingTo: path)
        let child = fork()
        if child == 0 {
            // Little else can be called there: other threads held what locks they did.
            sleep(30)
            _exit(0)
        }
        guard child > 0 else { throw TestFailure("fork: errno \(errno)") }
        let isOpen = fcntl(socket.descriptor, F_GETFD) >= 0
        #expect(isOpen)
        return child
    }
}
