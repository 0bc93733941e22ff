import DeviceAgent
import FleetProtocol
import TestSupport

/// A device that has been through what its store must remember: groups, layers, a tombstone, a newer trust document, an
/// app that is authorized, one that is retired and latched, a log level whose time runs, a passcode that was entered wrongly, events.
struct FixtureDevice {
    var device: TestDevice
    static let kiosk = GroupID(unchecked: "kiosk")

    init(_ store: DeviceStore, fleet: TestFleet? = nil) throws {
        device = try TestDevice(fleet: fleet, store: store)
        device.comparesStore = false
        try device.connect()
        try device.publish(.trust, device.fleet.trust(version: 2).wire)
        let membership = Address.membership(device.device)
        try device.publish(membership, device.fleet.document(membership, .membership([Self.kiosk])))
        let first = try device.launch(mail)
        try device.apply(.all, mail, .auth, .auth(.authorized, "Welcome."))
        try device.apply(.group(Self.kiosk), mail, .config, .config(["server": "https://mail.example.com"]))
        try device.apply(.device(device.device), mail, .config, .config(["server": "other"]))
        try device.apply(.device(device.device), mail, .config, .tombstone)
        try device.apply(
            .all, mail, .logLevel,
            .level(LogLevelWish(level: .debug, duration: 600, notAfter: device.now.wall.advanced(bySeconds: 3_600))))
        try device.answer(first)
        let second = try device.launch(notes)
        try device.apply(.all, notes, .auth, .auth(.authorized))
        try device.answer(second)
        try device.apply(.device(device.device), notes, .auth, .auth(.retired, "This till is no longer in use."))
        try device.answer(second)
        var services = SecureServicesValue()
        services.passcode = .init(isRequired: true)
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(services))))
        try device.ask(.set(new: "2468", current: nil))
        try device.ask(.enter("1357"))
        try device.wait(70)
    }
}
