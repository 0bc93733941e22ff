import Glibc

/// A line that a person types and nobody is to see.
enum SecretLine {
    /// Reads a line from standard input; on a terminal asks for it, and does not show it.
    ///
    /// - Parameter what: Such as "Debug code".
    static func read(_ what: String) throws -> String {
        let silence = TerminalSilence()
        if silence.isTerminal { write("\(what): ") }
        defer {
            silence.end()
            if silence.isTerminal { write("\n") }
        }
        guard let line = readLine(strippingNewline: true), !line.isEmpty else {
            throw DeviceAgentError(.configuration, "\(what.lowercased()): nothing was given on standard input")
        }
        // Repaired, two of these could be the same.
        guard !line.unicodeScalars.contains("\u{FFFD}") else {
            throw DeviceAgentError(
                .configuration, "\(what.lowercased()): what was given is not UTF-8: set the terminal to that")
        }
        return line
    }

    private static func write(_ text: String) { Glibc.write(STDERR_FILENO, text, text.utf8.count) }

    static var isTyped: Bool { isatty(STDIN_FILENO) == 1 }
}

/// A terminal that does not show what is typed, and does again after Ctrl-C.
private struct TerminalSilence {
    /// For the handler of signals; written before that is set.
    nonisolated(unsafe) private static var before = termios()
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    let isTerminal: Bool

    init() {
        isTerminal = tcgetattr(STDIN_FILENO, &Self.before) == 0
        guard isTerminal else { return }
        for number in Self.signals {
            signal(number) { number in
                tcsetattr(STDIN_FILENO, TCSANOW, &TerminalSilence.before)
                signal(number, SIG_DFL)
                raise(number)
            }
        }
        var silent = Self.before
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &silent)
    }

    func end() {
        guard isTerminal else { return }
        tcsetattr(STDIN_FILENO, TCSANOW, &Self.before)
        for number in Self.signals { signal(number, SIG_DFL) }
    }
}
