package import Foundation

/// The folder of the built executables, beside the test bundle.
package func productsFolder() throws -> URL {
    let bundles = CommandLine.arguments.filter { $0.contains(".xctest") } + ["/proc/self/exe"]
    for path in bundles {
        let folder = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        for candidate in [
            folder.deletingLastPathComponent(), folder.deletingLastPathComponent().deletingLastPathComponent(),
        ]
        where FileManager.default.fileExists(atPath: candidate.appendingPathComponent("fleetctl").path) {
            return candidate
        }
    }
    throw TestFailure("the built executables were not found beside \(bundles.joined(separator: ", "))")
}

/// The path of a program: a built product, or one on the search path or among the system's daemons.
package func program(named name: String) throws -> URL {
    if let folder = try? productsFolder() {
        let product = folder.appendingPathComponent(name)
        if FileManager.default.isExecutableFile(atPath: product.path) { return product }
    }
    let path = (ProcessInfo.processInfo.environment["PATH"] ?? "") + ":/usr/sbin:/usr/bin:/sbin:/bin"
    for folder in path.split(separator: ":") {
        let candidate = "\(folder)/\(name)"
        if FileManager.default.isExecutableFile(atPath: candidate) { return URL(fileURLWithPath: candidate) }
    }
    throw TestFailure("\(name) is not installed: run deploy/test, which installs what the tests need")
}
