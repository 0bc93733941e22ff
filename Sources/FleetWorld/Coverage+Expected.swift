import FleetProtocol

extension Coverage {
    /// What the schedules should reach. What is not here cannot happen: nobody subscribes to desired documents before the
    /// first barrier, nothing arrives while away.
    static let expected: [Transition] =
        deviceEvents + deviceMessages + deviceEffects + stored + outcomes + authorization + controllerEvents + requests

    /// Of these, the ones that less than one schedule in 160 meets, counted in 8,000: mostly, a device must be out of contact
    /// for minutes first, or people must do something in a moment that is short.
    static let rare: Set<Transition> = Set(
        each(
            "authorization", ["retired outOfContact"], ["authorized policy", "unauthorized policy", "retired policy"])
            + each("authorization", ["authorized policy"], ["retired outOfContact", "unauthorized outOfContact"])
            + each("authorization", ["unauthorized outOfContact"], ["authorized policy", "retired outOfContact"])
            + each("authorization", ["retired policy"], ["unauthorized policy"])
            + each("retirement", ["released"], ["outOfContact"])
            + each("outcome of log levels", ["expired"], ["awaitingCode"])
            + each("outcome of log levels", ["awaitingCode"], ["applied"])
            + each("exchange", ["connection lost"], ["not done"])
            + each("controller", ["warns of other documents"], ["serving"])
            + each("device event", ["codeChecked"], names(Phase.allCases))
            + each("device event", ["passcode is not compared"], names([.certain]))
            + each("device event", ["display", "displayed"], names([.beforeFirst, .fetching]))
            + each("device effect", ["checkCode", "send pasted"], [""]))

    private static func each(_ part: String, _ what: [String], _ places: [String]) -> [Transition] {
        what.flatMap { what in places.map { Transition(part, what, $0) } }
    }

    private static func names(_ phases: [Phase]) -> [String] { phases.map(\.rawValue) }

    private static let deviceEvents =
        each(
            "device event",
            [
                "register", "ready", "delivered", "taken", "acknowledge", "blocked", "retire", "display", "code",
                "linkClosed",
                "registrationRefused", "codeChecked", "displayed", "tick", "stopping",
            ], names(Phase.allCases))
        + each(
            "device event",
            [
                "enter passcode", "set passcode", "lock", "used", "passcode is right", "passcode is wrong",
                "passcode is not compared", "copy", "paste",
            ],
            names([.certain]))
        + each("device event", ["connected"], names([.beforeFirst]))
        + each("device event", ["disconnected"], names([.away]))
        + each("device event", ["subscribed"], names([.beforeFirst, .fetching]))

    private static let deviceMessages =
        each(
            "device message",
            [
                "trust", "group meta", "membership", "heartbeat", "hello", "received", "a device's presence",
            ], names([.beforeFirst, .fetching, .certain]))
        + each("device message", ["barrier"], names([.beforeFirst, .fetching]))
        + each("device message", ["desired"], names([.fetching, .certain]))

    private static let deviceEffects = each(
        "device effect",
        [
            "destroyKeys", "createKeys", "store", "subscribe", "unsubscribe", "publish a device's presence",
            "publish barrier", "publish event", "publish log-level", "report", "reconnect", "send welcome",
            "send refused", "send ready", "send deliver", "send displayed", "send codeResult", "send kept", "send keys",
            "send no keys", "close", "display", "checkCode", "checkPasscode", "send autoLock", "send passcode done",
            "send passcode wrong", "send copied", "send pasted", "send pasted nothing",
        ], [""])

    private static let stored = each(
        "device store",
        [
            "started", "trust", "groups", "clock", "document", "tombstone", "mark", "app", "passcode", "event",
            "dropEvents", "dropEvent",
        ], [""])

    private static let outcomes =
        each(
            "outcome of the app's policies", ["pending"], ["delivered", "applied", "error", "unsupported", "rejected"])
        + each("outcome of the app's policies", ["delivered"], ["pending", "applied", "error"])
        + each("outcome of the app's policies", ["applied"], ["pending", "error", "rejected"])
        + each("outcome of the app's policies", ["error"], ["pending", "applied", "rejected"])
        + each("outcome of the app's policies", ["unsupported"], ["pending"])
        + each("outcome of the app's policies", ["rejected"], ["pending"])
        + each("outcome of the agent's policies", ["applied"], ["rejected"])
        + each("outcome of the agent's policies", ["rejected"], ["applied"])
        + each("outcome of log levels", ["applied"], ["awaitingCode", "expired", "rejected"])
        + each("outcome of log levels", ["awaitingCode"], ["applied", "expired"])
        + each("outcome of log levels", ["expired"], ["applied", "awaitingCode"])
        + each("outcome of log levels", ["rejected"], ["applied"])

    private static let authorization =
        each("authorization", ["unauthorized none"], ["authorized policy", "unauthorized policy", "retired policy"])
        + each(
            "authorization", ["authorized policy"],
            [
                "unauthorized none", "unauthorized policy", "retired policy", "retired selfRetired",
                "unauthorized outOfContact", "retired outOfContact",
            ])
        + each("authorization", ["unauthorized policy"], ["authorized policy", "retired policy"])
        + each(
            "authorization", ["unauthorized outOfContact"], ["authorized policy", "retired outOfContact"])
        + each("authorization", ["retired policy"], ["authorized policy", "unauthorized policy"])
        + each(
            "authorization", ["retired selfRetired"], ["authorized policy", "unauthorized policy", "retired policy"])
        + each(
            "authorization", ["retired outOfContact"], ["authorized policy", "unauthorized policy", "retired policy"])
        + each("retirement", ["latched", "released"], ["policy", "selfRetired", "outOfContact"])

    private static let controllerEvents =
        each("controller", ["connected"], ["offline"])
        + each("controller", ["refused"], ["looking", "serving"])
        + each("controller", ["disconnected", "enrolments"], ["looking", "serving"])
        + each("controller", ["tick"], ["offline", "looking", "serving"])
        + each(
            "controller",
            [
                "desired", "trust", "group meta", "membership", "a device's presence", "the controller's presence",
                "status", "event", "log-level", "request",
            ], ["looking", "serving"])
        + each("controller", ["barrier"], ["looking", "serving"])
        + each("controller", ["warns of other documents"], ["serving"])

    private static let requests =
        each(
            "request",
            [
                "apply", "delete", "group-set", "group-delete", "groups", "devices", "apps", "policies", "status",
                "progress", "history", "enroll", "device-remove",
            ], ["ok"])
        + each("request", ["apply", "group-delete"], ["refused"])
        + each("exchange", ["nobody there", "refused", "connection lost"], ["not done", "may be done"])
        + each("exchange", ["no answer"], ["may be done"])
}
