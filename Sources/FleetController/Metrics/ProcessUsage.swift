import Glibc

/// What this process has of the machine, by the names that Prometheus' own clients give it. What cannot be read is left out.
struct ProcessUsage {
    private let begun: time_t = time(nil)
    private let databasePath: String

    init(databasePath: String) { self.databasePath = databasePath }

    var metrics: [Metric] {
        var metrics = [
            Metric("process_start_time_seconds", "When this process began, in Unix time.", begun),
            Metric(
                "process_cpu_seconds_total", "Processor time that it has used, in seconds.", kind: .counter,
                Self.processorSeconds),
        ]
        if let resident = Self.residentBytes {
            metrics.append(Metric("process_resident_memory_bytes", "Memory that it has in use, in bytes.", resident))
        }
        if let size = Self.size(of: databasePath) {
            let log = Self.size(of: databasePath + "-wal") ?? 0
            metrics.append(
                Metric("fleetbus_database_bytes", "The controller's database with its log, in bytes.", size + log))
        }
        return metrics
    }

    private static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static var residentBytes: Int? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = fread(&bytes, 1, bytes.count, file)
        let fields = String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? Int(fields[1]).map { $0 * sysconf(Int32(_SC_PAGESIZE)) } : nil
    }

    private static func size(of path: String) -> Int? {
        var info = stat()
        return stat(path, &info) == 0 ? Int(info.st_size) : nil
    }
}
