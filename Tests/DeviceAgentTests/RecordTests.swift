import DeviceAgent
import FleetProtocol
import Testing

@Suite("An app's record on the disk")
struct RecordTests {
    @Test("a record that lived through anything is read back as it was")
    func roundTrip() throws {
        var device = try TestDevice()
        device.comparesStore = true
        try device.connect()
        var dlp = DLP()
        dlp.openIn = .whitelist([notes])
        dlp.openFrom = .appConnectApps
        var services = SecureServicesValue()
        services.isLocked = true
        services.offline = SecureServicesValue.Offline(blockAfter: 60, wipeAfter: 600)
        services.passcode = SecureServicesValue.Passcode(isRequired: true)
        services.passcode?.classes = ["digit"]
        let link = try device.launch(mail, implements: [.config])
        try device.apply(.all, mail, .auth, .auth(.authorized, "\u{1F600} \"\\"))
        try device.apply(.all, mail, .dlp, .aspect(DesiredValue(.dlp(dlp))))
        try device.apply(.all, mail, .secureServices, .aspect(DesiredValue(.secureServices(services))))
        try device.apply(
            .device(device.device), mail, .logLevel,
            .level(LogLevelWish(level: .debug, duration: 60, notAfter: device.now.wall.advanced(bySeconds: 30))))
        try device.apply(.all, mail, .config, .config(["": "", "k\u{0}": "\u{2028}"]))
        try device.answer(link, .error)
        try device.wait(40)
        try device.handle(.frame(link, .retire(number: 3)))
        for app in device.core.state.apps.values {
            #expect(try AppRecord(json: app.json, limit: .max) == app)
        }
    }
}
