import DeviceAgent
import FleetProtocol
import TestSupport
import Testing

@Suite("The pasteboard of a device")
struct PasteboardTests {
    private static let secret = PasteboardItem([1, 2, 3], isSecured: true)
    private static let open = PasteboardItem([4, 5, 6], isSecured: false)

    /// A device with two authorized apps, which may copy as `policy` says.
    private func device(_ policy: PasteboardPolicy) throws -> (TestDevice, mail: LinkID, notes: LinkID) {
        var device = try TestDevice()
        try device.connect()
        for app in [mail, notes] {
            try device.apply(.all, app, .auth, .auth(.authorized))
            try device.allow(policy, to: app)
        }
        let links = try [mail, notes].map { app in
            let link = try device.launch(app)
            try device.answer(link)
            return link
        }
        return (device, links[0], links[1])
    }

    @Test(
        "takes what the policy of who copies allows",
        arguments: [
            (PasteboardPolicy.unauthorized, open, false), (.unauthorized, secret, false), (.authorized, open, true),
            (.authorized, secret, true), (.secureCopy, open, false), (.secureCopy, secret, true),
        ])
    func copy(_ policy: PasteboardPolicy, _ item: PasteboardItem, _ isTaken: Bool) throws {
        var (device, mail, notes) = try device(policy)
        #expect(try device.copy(item, mail) == isTaken)
        #expect(try device.paste(notes) == (isTaken ? item : nil))
    }

    @Test("gives what is secured to those who have secure services, and takes it from them alone")
    func confined() throws {
        var (device, mailLink, notesLink) = try device(.secureCopy)
        #expect(try device.copy(Self.secret, mailLink))
        try device.apply(.all, notes, .auth, .auth(.unauthorized))
        #expect(try device.paste(notesLink) == nil)
        #expect(try device.copy(PasteboardItem([9], isSecured: true), notesLink) == false)
        try device.apply(.all, notes, .auth, .auth(.authorized))
        #expect(try device.paste(notesLink) == Self.secret)
        var services = SecureServicesValue()
        services.isLocked = true
        try device.apply(.all, notes, .secureServices, .aspect(DesiredValue(.secureServices(services))))
        #expect(try device.paste(notesLink) == nil)
        #expect(try device.copy(PasteboardItem([9], isSecured: true), notesLink) == false)
        #expect(try device.paste(mailLink) == Self.secret)
    }

    @Test("gives what is not secured to every app, and has room for one thing")
    func unsecured() throws {
        var (device, mailLink, notesLink) = try device(.authorized)
        #expect(try device.paste(notesLink) == nil)
        #expect(try device.copy(Self.secret, mailLink))
        #expect(try device.copy(Self.open, mailLink))
        try device.apply(.all, notes, .auth, .auth(.unauthorized))
        #expect(try device.paste(notesLink) == Self.open)
        #expect(try device.copy(nil, notesLink) == false)
        #expect(try device.paste(notesLink) == Self.open, "who may not copy empties nothing either")
        #expect(try device.copy(nil, mailLink))
        #expect(try device.paste(notesLink) == nil)
    }

    @Test("forgets what a retired app has copied, whoever retired it, and keeps nothing over a restart")
    func retired() throws {
        for isSelf in [true, false] {
            for item in [Self.secret, Self.open] {
                var (device, mailLink, notesLink) = try device(.authorized)
                #expect(try device.copy(item, mailLink))
                if isSelf {
                    try device.handle(.frame(mailLink, .retire(number: 1)))
                } else {
                    try device.apply(.all, mail, .auth, .auth(.retired))
                }
                #expect(try device.paste(notesLink) == nil)
            }
        }
        var (device, mailLink, _) = try device(.secureCopy)
        #expect(try device.copy(Self.secret, mailLink))
        try device.apply(.all, notes, .auth, .auth(.retired))
        #expect(try device.paste(mailLink) == Self.secret, "that is another app's")
        try device.apply(.all, notes, .auth, .auth(.authorized))
        try device.restart()
        #expect(try device.paste(device.launch(mail)) == nil)
    }

    @Test("is for apps alone")
    func unregistered() throws {
        var (device, mailLink, _) = try device(.authorized)
        #expect(try device.copy(Self.open, mailLink))
        let stranger = LinkID(1_000)
        try device.handle(.frame(stranger, .paste(id: 1)))
        try device.handle(.frame(stranger, .copy(id: 2, nil)))
        for frame in device.sent[stranger] ?? [] {
            guard case .refused(.invalid, _) = frame else {
                Issue.record("\(frame)")
                return
            }
        }
        #expect(device.closed.contains(stranger))
        #expect(try device.paste(mailLink) == Self.open)
    }
}

extension TestDevice {
    fileprivate mutating func allow(_ policy: PasteboardPolicy, to app: AppID) throws {
        var dlp = DLP()
        dlp.pasteboard = policy
        try apply(.all, app, .dlp, .aspect(DesiredValue(.dlp(dlp))))
    }

    /// Whether it was taken.
    fileprivate mutating func copy(_ item: PasteboardItem?, _ link: LinkID) throws -> Bool {
        sent[link] = []
        try handle(.frame(link, .copy(id: 7, item)))
        for case .copied(7, let isDone) in sent[link] ?? [] { return isDone }
        throw TestFailure("no answer")
    }

    fileprivate mutating func paste(_ link: LinkID) throws -> PasteboardItem? {
        sent[link] = []
        try handle(.frame(link, .paste(id: 8)))
        let answers = (sent[link] ?? []).compactMap { frame -> PasteboardItem?? in
            if case .pasted(8, let item) = frame { .some(item) } else { nil }
        }
        guard answers.count == 1 else { throw TestFailure("\(answers.count) answers") }
        return answers[0]
    }
}
