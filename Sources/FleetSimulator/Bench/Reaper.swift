import FleetProtocol

/// Ends what this process has started and could not end itself, because it was killed: a shell that waits until nobody is
/// left to write to it, and then looks for processes with this one's mark in their environment.
enum Reaper {
    /// What every process that is started has in its environment.
    static let mark = (name: "FLEET_SIM", value: RandomID.random().text)

    private static let shell = try? Child(
        "/bin/sh", ["-c", script, "reaper", "\(mark.name)=\(mark.value)"],
        Child.Streams(output: "/dev/null", takesInput: true), isMarked: false)

    /// A process on its way to be another program has the other end of the pipe open until then: none is missed. What ends
    /// a group of processes at the terminal must not end this one first.
    private static let script = """
        trap '' HUP INT TERM
        cat
        for environment in /proc/[0-9]*/environ; do
            grep -qzx "$1" "$environment" 2>/dev/null || continue
            pid=${environment#/proc/}
            kill -9 "${pid%/environ}"
        done
        """

    /// Once in a process, before its first child.
    static func watch() { _ = shell }
}
