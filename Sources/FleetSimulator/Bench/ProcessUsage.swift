import FleetProtocol
import Foundation
import Glibc

/// What a process has used so far.
struct ProcessUsage: Sendable {
    /// Processor time in seconds.
    var processor = 0.0
    /// Calls of the read and write families. `recv`, `send`, `epoll_wait` and the like are not among them.
    var reads = 0
    var writes = 0
    /// Hardware instructions in user mode, where the processor's counters can be used.
    var instructions: Int?

    init() {}

    init(of pid: pid_t, _ counter: InstructionCounter? = nil) {
        var clock = clockid_t()
        var time = timespec()
        if clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 {
            processor = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        for line in Self.lines("/proc/\(pid)/io") {
            let words = line.split(separator: ":")
            guard words.count == 2, let number = Int(words[1].drop { $0 == " " }) else { continue }
            if words[0] == "syscr" { reads = number }
            if words[0] == "syscw" { writes = number }
        }
        instructions = counter?.value
    }

    static func - (left: ProcessUsage, right: ProcessUsage) -> ProcessUsage {
        var result = ProcessUsage()
        result.processor = left.processor - right.processor
        result.reads = left.reads - right.reads
        result.writes = left.writes - right.writes
        if let last = left.instructions, let first = right.instructions { result.instructions = last - first }
        return result
    }

    static func + (left: ProcessUsage, right: ProcessUsage) -> ProcessUsage {
        var result = ProcessUsage()
        result.processor = left.processor + right.processor
        result.reads = left.reads + right.reads
        result.writes = left.writes + right.writes
        if let last = left.instructions, let first = right.instructions { result.instructions = last + first }
        return result
    }

    /// Divided by `count` acknowledgements.
    func value(per count: Int) -> JSONValue {
        let count = Double(max(count, 1))
        return .object([
            "cpuMicroseconds": .double((processor * 1e6 / count).rounded(to: 2)),
            "reads": .double((Double(reads) / count).rounded(to: 3)),
            "writes": .double((Double(writes) / count).rounded(to: 3)),
            "instructions": instructions.map { .integer(Int64($0 / Int(count))) } ?? .null,
        ])
    }

    /// Resident memory in KiB: now, and the most that it ever was.
    static func memory(of pid: pid_t) -> (resident: Int, peak: Int) {
        var result = (resident: 0, peak: 0)
        for line in lines("/proc/\(pid)/status") {
            let words = line.split { $0 == ":" || $0 == "\t" || $0 == " " }
            guard words.count >= 2, let number = Int(words[1]) else { continue }
            if words[0] == "VmRSS" { result.resident = number }
            if words[0] == "VmHWM" { result.peak = number }
        }
        return result
    }

    /// Lets the allocator give back to the system what is free.
    static func trim() {
        typealias Trim = @convention(c) (Int) -> Int32
        if let symbol = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(symbol, to: Trim.self)(0) }
    }

    static func lines(_ path: String) -> [Substring] {
        (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n") ?? []
    }
}

/// Adds up what some processes use while it is on.
struct UsageMeter {
    private let processes: [(name: String, pid: pid_t, counter: InstructionCounter?)]
    private var before: [ProcessUsage] = []
    private(set) var total: [ProcessUsage]
    /// Of each time that it was on, by process.
    private var runs: [[ProcessUsage]] = []

    init(_ processes: [(String, pid_t)]) {
        self.processes = processes.map { ($0.0, $0.1, InstructionCounter(of: $0.1)) }
        total = processes.map { _ in
            var none = ProcessUsage()
            none.instructions = 0
            return none
        }
    }

    private var now: [ProcessUsage] { processes.map { ProcessUsage(of: $0.pid, $0.counter) } }

    mutating func start() { before = now }
    mutating func stop() {
        let run = zip(now, before).map { $0 - $1 }
        total = zip(total, run).map { $0 + $1 }
        runs.append(run)
    }

    func usage(of name: String) -> ProcessUsage {
        zip(processes, total).first { $0.0.name == name }?.1 ?? ProcessUsage()
    }

    /// Reads and writes for each of `count` acknowledgements of a run, the median of the runs: something else that the
    /// processes do once is not in it.
    func calls(per count: Int) -> JSONValue {
        .object(
            processes.indices.map { index in
                let calls = runs.map { Double($0[index].reads + $0[index].writes) / Double(max(count, 1)) }
                return JSONValue.Member(processes[index].name, .double(calls.median.rounded(to: 2)))
            })
    }

    func value(per count: Int) -> JSONValue {
        .object(zip(processes, total).map { JSONValue.Member($0.name, $1.value(per: count)) })
    }
}
