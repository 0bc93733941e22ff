import ArgumentParser
import FleetProtocol
import Foundation

/// Which devices a command is for.
struct DeviceNames: ParsableArguments {
    @Argument(help: ArgumentHelp("The devices' ids.", valueName: "id"))
    var ids: [String] = []
    @Option(help: ArgumentHelp("A file with one id a line; - is standard input.", valueName: "file"))
    var from: String?

    func validate() throws {
        guard !ids.isEmpty || from != nil else { throw ValidationError("name at least one device") }
    }

    /// Each of them once, in the order in which they are named.
    func devices() throws -> [DeviceID] {
        var named = ids.map { (text: $0, place: "") }
        if let from { named += try Self.listed(in: from) }
        var seen = Set<DeviceID>()
        var devices: [DeviceID] = []
        for (text, place) in named {
            let device: DeviceID
            do {
                device = try DeviceID(checking: text)
            } catch {
                throw CommandError(.refused, "\(place)\(error)")
            }
            if seen.insert(device).inserted { devices.append(device) }
        }
        return devices
    }

    /// The lines of a file that name devices, each with its place.
    private static func listed(in file: String) throws -> [(text: String, place: String)] {
        let source = try Arguments.read(file)
        guard source.bytes.count <= YAMLSource.maximumSize else {
            throw CommandError(.refused, "\(source.name) is larger than \(YAMLSource.maximumSize) bytes: split it")
        }
        guard let text = String(validating: source.bytes, as: UTF8.self) else {
            throw CommandError(.refused, "\(source.name) is not UTF-8")
        }
        // Some editors begin a file with a mark of the order of its bytes.
        let lines = text.trimmingPrefix("\u{FEFF}")
            .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let listed = lines.enumerated().map { number, line in
            (text: line.trimmingCharacters(in: .whitespaces), place: "\(source.name):\(number + 1): ")
        }.filter { !$0.text.isEmpty && !$0.text.hasPrefix("#") }
        guard !listed.isEmpty else { throw CommandError(.refused, "\(source.name) names no device") }
        return listed
    }

    /// `till-1, till-2…`
    static func few(_ devices: some Collection<DeviceID>) -> String {
        devices.prefix(5).map(\.text).joined(separator: ", ") + (devices.count > 5 ? "…" : "")
    }
}
