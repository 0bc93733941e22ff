import AppConnect
import Glibc

/// Something that the app keeps, so that it has something to erase when it is retired.
struct DemoData: Sendable {
    let folder: String

    /// In a secure file: what erasing it leaves on the disk nobody reads either.
    func make(in app: AppConnect) {
        mkdir(folder, 0o700)
        do {
            try app.files.write("Something that must not outlive a retirement.\n".utf8, to: "\(folder)/notes")
        } catch {
            Output.write(error: error)
        }
    }

    /// Removes the folder's files, and says how many.
    func erase() -> Int64 {
        guard let directory = opendir(folder) else { return 0 }
        defer { closedir(directory) }
        var count: Int64 = 0
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != "..", unlink("\(folder)/\(name)") == 0 { count += 1 }
        }
        return count
    }
}
