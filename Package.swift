// swift-tools-version: 6.2

import PackageDescription

/// Every target of ours is compiled alike: Swift 6 mode, the upcoming features that make imports and isolation explicit,
/// and no warning left standing.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

extension Target.Dependency {
    static let argumentParser = product(name: "ArgumentParser", package: "swift-argument-parser")
    static let crypto = product(name: "Crypto", package: "swift-crypto")
    static let cryptoExtras = product(name: "CryptoExtras", package: "swift-crypto")
    static let grdb = product(name: "GRDB", package: "GRDB.swift")
    static let logging = product(name: "Logging", package: "swift-log")
    static let nio = product(name: "NIOCore", package: "swift-nio")
    static let nioHTTP = product(name: "NIOHTTP1", package: "swift-nio")
    static let nioPosix = product(name: "NIOPosix", package: "swift-nio")
    static let serviceLifecycle = product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
    static let unixSignals = product(name: "UnixSignals", package: "swift-service-lifecycle")
    static let yams = product(name: "Yams", package: "Yams")
}

let package = Package(
    name: "fleetbus",
    products: [
        .library(name: "AppConnect", targets: ["AppConnect"]),
        .library(name: "FleetProtocol", targets: ["FleetProtocol"]),
        .library(name: "Mosquitto", targets: ["Mosquitto"]),
        .library(name: "FleetBrokerPlugin", type: .dynamic, targets: ["FleetBrokerPlugin"]),
        .executable(name: "fleet-agent", targets: ["fleet-agent"]),
        .executable(name: "fleet-controller", targets: ["fleet-controller"]),
        .executable(name: "fleet-sim", targets: ["fleet-sim"]),
        .executable(name: "fleetctl", targets: ["fleetctl"]),
        .executable(name: "sample-app", targets: ["sample-app"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The bus
        .systemLibrary(
            name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
        .target(name: "Mosquitto", dependencies: ["CMosquitto"], swiftSettings: settings),
        .target(name: "FleetProtocol", dependencies: [.crypto], swiftSettings: settings),

        // The broker
        .systemLibrary(name: "CMosquittoBroker", providers: [.apt(["mosquitto-dev"])]),
        .target(name: "BrokerGuard", dependencies: ["FleetProtocol"], swiftSettings: settings),
        .target(
            name: "FleetBrokerPlugin", dependencies: ["BrokerGuard", "CMosquittoBroker", "FleetProtocol"],
            swiftSettings: settings,
            // It carries Swift's runtime: the broker's host, and the user as whom that runs, need none. No build option links
            // a library so, and --static-swift-stdlib alone links none at all. The three are what Foundation's part of the
            // runtime needs in turn. No other product depends on this target, so that others can depend on this package.
            linkerSettings: [.unsafeFlags(["-static-stdlib"])]
                + ["_FoundationCollections", "_FoundationCShims", "swiftSynchronization"].map { .linkedLibrary($0) }),

        // The device
        .systemLibrary(name: "CLinux"),
        .target(
            name: "AppConnect", dependencies: ["CLinux", "FleetProtocol", .crypto, .logging], swiftSettings: settings),
        .target(
            name: "DeviceAgent",
            dependencies: [
                "FleetProtocol", "Mosquitto", .crypto, .cryptoExtras, .grdb, .logging, .nio, .nioPosix,
                .serviceLifecycle,
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "fleet-agent",
            dependencies: ["DeviceAgent", "FleetProtocol", .argumentParser, .logging, .serviceLifecycle, .unixSignals],
            swiftSettings: settings),
        .executableTarget(
            name: "sample-app", dependencies: ["AppConnect", "FleetProtocol", .argumentParser, .logging],
            swiftSettings: settings),

        // The controller and its operators
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(
            name: "FleetHome", dependencies: ["BrokerGuard", "CLinux", "FleetProtocol", .crypto, .cryptoExtras],
            swiftSettings: settings),
        .target(
            name: "FleetController",
            dependencies: [
                "CSQLite", "FleetProtocol", "FleetHome", "Mosquitto", .grdb, .logging, .nio, .nioHTTP, .nioPosix,
                .serviceLifecycle,
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "fleet-controller",
            dependencies: [
                "FleetController", "FleetHome", "FleetProtocol", .argumentParser, .logging, .serviceLifecycle,
                .unixSignals,
            ],
            swiftSettings: settings),
        .target(
            name: "FleetCommands",
            dependencies: ["FleetProtocol", "FleetHome", "Mosquitto", .argumentParser, .unixSignals, .yams],
            swiftSettings: settings),
        .executableTarget(
            name: "fleetctl", dependencies: ["FleetCommands", .argumentParser], swiftSettings: settings),

        // Sizing and proof
        .target(
            name: "FleetWorld",
            dependencies: [
                "AppConnect", "BrokerGuard", "DeviceAgent", "FleetCommands", "FleetController", "FleetHome",
                "FleetProtocol", "Mosquitto",
            ],
            swiftSettings: settings),
        .target(
            name: "FleetSimulator",
            dependencies: [
                "AppConnect", "BrokerGuard", "DeviceAgent", "FleetCommands", "FleetController", "FleetHome",
                "FleetProtocol", "FleetWorld", "Mosquitto", .argumentParser, .grdb, .logging,
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "fleet-sim", dependencies: ["FleetCommands", "FleetSimulator", .argumentParser],
            swiftSettings: settings),

        // Tests
        .target(name: "TestSupport", dependencies: [.grdb], path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(name: "MosquittoTests", dependencies: ["Mosquitto", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "FleetProtocolTests", dependencies: ["FleetProtocol"], swiftSettings: settings),
        .testTarget(
            name: "BrokerGuardTests", dependencies: ["BrokerGuard", "FleetProtocol"], swiftSettings: settings),
        .testTarget(
            name: "AppConnectTests", dependencies: ["AppConnect", "FleetProtocol", "TestSupport", .logging],
            swiftSettings: settings),
        .testTarget(
            name: "DeviceAgentTests",
            dependencies: ["DeviceAgent", "FleetProtocol", "Mosquitto", "TestSupport", .grdb, .logging],
            exclude: ["Fixtures"], swiftSettings: settings),
        .testTarget(
            name: "FleetHomeTests", dependencies: ["FleetHome", "FleetProtocol", "Mosquitto", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "FleetControllerTests",
            dependencies: [
                "FleetController", "FleetHome", "FleetProtocol", "Mosquitto", "TestSupport", .grdb, .logging,
                .serviceLifecycle,
            ],
            exclude: ["Fixtures"], swiftSettings: settings),
        .testTarget(
            name: "FleetCommandsTests",
            dependencies: [
                "FleetCommands", "FleetHome", "FleetProtocol", "Mosquitto", "TestSupport", .argumentParser,
            ],
            swiftSettings: settings),
        .testTarget(name: "FleetWorldTests", dependencies: ["FleetWorld", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "FleetSimulatorTests",
            dependencies: [
                "DeviceAgent", "FleetCommands", "FleetController", "FleetHome", "FleetProtocol", "FleetSimulator",
                "FleetWorld", "Mosquitto", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "EndToEndTests", dependencies: ["FleetProtocol", "Mosquitto", "TestSupport"], exclude: ["foreign"],
            swiftSettings: settings),
    ]
)
