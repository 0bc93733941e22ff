/// A promise of the design that a schedule has broken.
package struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
    package let law: Law
    package let what: String

    package var description: String { "\(law.rawValue): \(what)" }
}

/// What holds whatever happens, each named after the promise it stands for.
package enum Law: String, CaseIterable, Sendable {
    case convergence = "every device in contact has what its layers say"
    case summary = "the controller's summary is what the devices have"
    case unforged = "no app sees what its fleet did not sign"
    case forward = "no app sees a document older than one it has seen"
    case barrier = "nothing loosens before barrier and hello"
    case erased = "a retired app's keys are gone before anyone is told"
    case kept = "no acknowledgement, event or log-level change is lost"
    case once = "no event is counted twice"
    case order = "no status goes back in (incarnation, boot, seq)"
    case stored = "nobody is told what is not stored"
    case answered = "what was answered for is done, once"
    case planned = "a plan is what comes of the change, and changes nothing"
    case restored = "a controller stops only when it was put back from a backup, or is not the only one"
    case alone = "a fleet has one controller"
    case presence = "a device that is connected is shown so"
    case rights = "a guarded broker lets nobody read or say what is not theirs"
    case gone = "nothing of a device that was taken out of the fleet is left"
    case bounded = "memory and queues are bounded"
    case ends = "every state that is not final ends"
    case sameStore = "the real store keeps what the model of it keeps"
    case continues = "what was in force goes on without contact"
    case limits = "offline limits are neither early nor late"
    case codes = "a level that needs a code has had it"
    case passcodes = "what asks for the passcode has had it"
    case confined = "what is copied is pasted by who may read it, until its app is retired"
    case latched = "a retirement ends by a later auth document alone"
    case keys = "an app that is not retired keeps its keys"
    case quiet = "an app is told its ready first, then what has changed, once"
    case whole = "authorization comes last and goes first"
    case total = "no input makes a part fail"
}
