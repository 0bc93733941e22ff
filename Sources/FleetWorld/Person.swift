import FleetProtocol

/// Who sits at a device: enters its passcode, rightly or not, and uses apps. They act by a chance of their own: a world in
/// which nothing asks for a passcode goes as it would without them.
struct Person {
    var chance: SplitMix64
    /// What they will do next is on its way.
    var isBusy = false
    /// What they know of codes, which somebody tells them on the telephone.
    var codes: SplitMix64
    let entersCodes: Bool
    /// They are on the telephone.
    var isCalling = false
    /// What they have asked for, by connection.
    private(set) var asked: [Int64: PasscodeRequest] = [:]
    /// What they hold the passcode to be: several where nobody has told them whether a new one was taken.
    private var known: [String] = []
    private var number = 0
    /// They hardly ever know it.
    private let isForgetful: Bool
    /// Until then somebody is there who does not, and is in a hurry.
    var guessesUntil: Int64 = 0

    /// A passcode that all policies take has as many characters, digits and letters among them; one that some take as few.
    static let longPasscode: Int64 = 8
    static let shortPasscode: Int64 = 5

    /// Whether it has digits and letters. They type no others.
    static func isMixed(_ passcode: String) -> Bool {
        passcode.contains { ("0"..."9").contains($0) } && passcode.contains { ("a"..."z").contains($0) }
    }

    init(seed: UInt64) {
        chance = SplitMix64(seed: seed)
        codes = SplitMix64(seed: seed ^ 0xC0DE)
        entersCodes = codes.chance(60)
        var memory = SplitMix64(seed: seed ^ 0xF0E6E7)
        isForgetful = memory.chance(25)
    }

    /// What the agent keeps of a passcode, in place of a hash that takes its time.
    static func hash(_ text: String) -> CodeHash {
        let bytes = Array(text.utf8)
        return CodeHash(
            salt: [UInt8](repeating: 1, count: 8), hash: (0..<32).map { $0 < bytes.count ? bytes[$0] : 0 }, n: 2, r: 1,
            p: 1)
    }

    mutating func nextRequest(at now: Int64) -> PasscodeRequest {
        if now < guessesUntil { return chance.chance(85) ? .enter("guess") : .lock }
        // What takes too long is locked.
        if !asked.isEmpty, chance.chance(60) { return .lock }
        guard let passcode = known.isEmpty ? nil : known[chance.below(known.count)] else {
            return chance.chance(10)
                ? .enter("guess") : .set(new: chance.chance(15) ? "12" : newPasscode(), current: nil)
        }
        switch chance.below(100) {
        case 0..<(isForgetful ? 10 : 60): return .enter(passcode)
        case 0..<78: return .enter("wrong")
        case 78..<84: return .set(new: newPasscode(), current: passcode)
        case 84..<88: return .set(new: newPasscode(), current: "wrong")
        case 88..<90: return .set(new: newPasscode(), current: nil)
        case 90..<92: return .set(new: "12", current: passcode)
        default: return .lock
        }
    }

    private mutating func newPasscode() -> String {
        number += 1
        // Now and then one that is long enough, and has no digit.
        if number.isMultiple(of: 4) { return "passcode" }
        // The first ones are just as long as they must be.
        return number.isMultiple(of: 2) ? "passcod\(number)" : "pass\(number)"
    }

    mutating func asks(_ request: PasscodeRequest, on link: Int64) { asked[link] = request }

    /// What they had asked for, unless that is over.
    mutating func hears(_ result: PasscodeResult, on link: Int64) -> PasscodeRequest? {
        guard let request = asked.removeValue(forKey: link) else { return nil }
        switch (request, result.kind) {
        case (.enter(let text), .done): known = [text]
        case (.set(let new, _), .done): known = [new]
        case (.lock, _): break
        case (_, .notSet), (_, .notAsked): known = []
        case (.enter(let text), .wrong), (.set(_, let text?), .wrong):
            if known.count > 1 { known.removeAll { $0 == text } }
        default: break
        }
        return request
    }

    /// Nobody answers any more.
    mutating func hangUp() {
        for case .set(let new, _) in asked.values { known.append(new) }
        asked = [:]
    }
}
