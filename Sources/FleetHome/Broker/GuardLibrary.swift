import Glibc

/// The plugin that guards a broker, as a file.
struct GuardLibrary {
    /// Absolute.
    let path: String
    let bytes: [UInt8]

    /// Throws where there is none, or nothing that Mosquitto could load.
    init(reading path: String) throws {
        let file = Folder(path).path
        try FleetHome.checkConfigurable([file])
        let slash = file.lastIndex(of: "/") ?? file.startIndex
        bytes = try Folder(String(file[..<slash])).read(
            String(file[file.index(after: slash)...]), limit: 256 << 20,
            remedy: "build it with `swift build --product FleetBrokerPlugin`")
        guard bytes.starts(with: [0x7F] + Array("ELF".utf8)) else {
            throw FleetHomeError(
                .malformed, "\(file) is no plugin that Mosquitto could load",
                remedy: "name the libFleetBrokerPlugin.so that was built with this fleetctl")
        }
        self.path = file
    }
}

extension FleetHome {
    /// The guard that was built or installed with this program, if it is there.
    package static var ownGuardLibrary: String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlink("/proc/self/exe", &buffer, buffer.count)
        guard length > 0 else { return nil }
        let program = String(decoding: buffer[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard let slash = program.lastIndex(of: "/") else { return nil }
        return ["", "/../lib/fleetbus"].map { "\(program[..<slash])\($0)/libFleetBrokerPlugin.so" }
            .first { access($0, R_OK) == 0 }
    }
}
