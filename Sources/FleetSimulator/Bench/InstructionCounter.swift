import Glibc

/// Counts the instructions that a process retires in user mode, by the processor's own counters.
///
/// Only threads that exist when it is made are counted. There is none where the kernel or a virtual machine has no such
/// counters to give.
final class InstructionCounter: Sendable {
    private let descriptors: [Int32]

    /// `syscall` takes any arguments, which Swift cannot call: by the calling conventions of Linux on x86-64 and arm64 a
    /// function with these ones is called alike.
    private typealias OpenEvent =
        @convention(c) (Int, UnsafeRawPointer, Int32, Int32, Int32, UInt) -> Int

    init?(of pid: pid_t) {
        guard let symbol = dlsym(nil, "syscall") else { return nil }
        let open = unsafeBitCast(symbol, to: OpenEvent.self)
        var attributes = [UInt32](repeating: 0, count: 28)
        attributes[0] = 0  // PERF_TYPE_HARDWARE
        attributes[1] = UInt32(attributes.count * 4)
        attributes[2] = 1  // PERF_COUNT_HW_INSTRUCTIONS
        attributes[10] = 1 << 5 | 1 << 6  // exclude_kernel, exclude_hv
        var descriptors: [Int32] = []
        for thread in Self.threads(of: pid) {
            let descriptor = open(Self.number, attributes, thread, -1, -1, 8)  // PERF_FLAG_FD_CLOEXEC
            if descriptor >= 0 { descriptors.append(Int32(descriptor)) }
        }
        guard !descriptors.isEmpty else { return nil }
        self.descriptors = descriptors
    }

    deinit { for descriptor in descriptors { close(descriptor) } }

    var value: Int {
        descriptors.reduce(0) { sum, descriptor in
            var count: UInt64 = 0
            return read(descriptor, &count, 8) == 8 ? sum + Int(count) : sum
        }
    }

    #if arch(x86_64)
        private static let number = 298
    #else
        private static let number = 241
    #endif

    private static func threads(of pid: pid_t) -> [pid_t] {
        guard let folder = opendir("/proc/\(pid)/task") else { return [] }
        defer { closedir(folder) }
        var result: [pid_t] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let thread = pid_t(name) { result.append(thread) }
        }
        return result
    }
}
