import Foundation

/// The command that shows a text to the person at the device, and takes the screen while it runs.
struct DisplayCommand {
    /// The program's path, and what it is told.
    let words: [String]

    /// Gives the text on standard input. Blocks until the program itself has ended; what it leaves in the background, for
    /// which `Process.waitUntilExit` waits too, goes on.
    ///
    /// - Parameter over: Called once, when that has ended too, or there is none, or the program cannot be started.
    /// - Returns: Whether it ended with 0.
    /// - Throws: Why it cannot be started.
    func show(_ text: String, over: @escaping @Sendable () -> Void) throws -> Bool {
        let program = URL(fileURLWithPath: words[0]).path
        guard access(program, X_OK) == 0 else {
            let problem = Files.failure("start \(program)")
            over()
            throw problem
        }
        let process = Process()
        let input = Pipe()
        // It would take over what this thread blocks, nearly all signals, and what the agent ignores.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["--default-signal", "--", program] + words.dropFirst()
        process.standardInput = input
        process.terminationHandler = { _ in over() }
        do { try process.run() } catch {
            over()
            throw error
        }
        // One that does not read it shows nothing, or needs none of it.
        try? input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try? input.fileHandleForWriting.close()
        // Foundation collects it: until then nobody else has its number, and then it knows how it ended.
        var end = siginfo_t()
        while waitid(P_PID, id_t(process.processIdentifier), &end, WEXITED | WNOWAIT) != 0 {
            guard errno == EINTR else {
                process.waitUntilExit()
                return process.terminationStatus == 0
            }
        }
        return end.si_code == CLD_EXITED && end._sifields._sigchld.si_status == 0
    }
}
