import FleetProtocol

/// What is shown of a device that somebody should look at.
enum DeviceWarning {
    /// It was told in vain that its documents are not those that it should have.
    static let hasOthers =
        "has other documents than it should, and to be told so for twenty minutes has not helped: they do not reach it,"
        + " it refuses them (see its reports), or this database was put back from a backup (see fleet-controller run"
        + " --restored)"

    private static let ofCopy = "a cloned or restored image"

    /// Whether a warning is of a copy already.
    static func isOfCopy(_ warning: String?) -> Bool { warning?.hasSuffix(ofCopy) == true }

    static func backwards(_ incarnation: Int64, _ boot: Int64, _ device: DeviceRow) -> String {
        incarnation < device.incarnation
            ? "speaks as incarnation \(incarnation), where \(device.incarnation) is the newest: \(ofCopy)"
            : "speaks of boot \(name(boot)), where \(name(device.boot)) was the last: \(ofCopy)"
    }

    static func wentOn(from previous: Int64, past last: Int64) -> String {
        "goes on from boot \(name(previous)), where \(name(last)) was the last: \(ofCopy)"
    }

    /// By when it began, where it is named after that.
    private static func name(_ boot: Int64) -> String {
        boot > 1_000_000_000_000 ? "\(Timestamp(milliseconds: boot))" : "\(boot)"
    }

    /// Nobody can say any more whether they are gone.
    static func leftKeys(of apps: [AppID]) -> String {
        "came back on another disk: the keys of \(named(apps.map(\.text))) may be on the one before"
    }

    /// Whatever has been said since.
    static let isCopied = "a copy of its disk was heard, or an older state of it: \(ofCopy)"

    /// Where two have one disk.
    static func keysOnCopies(of apps: [AppID]) -> String {
        "the keys of \(named(apps.map(\.text))) may be on a copy of its disk, whatever it says of them"
    }

    /// How many there are, and the first of them.
    static func named(_ apps: [String]) -> String {
        let names = apps.prefix(5).joined(separator: ", ") + (apps.count > 5 ? "…" : "")
        return "\(apps.count == 1 ? "an app" : "\(apps.count) apps") (\(names))"
    }

    static func neverGivenOut(_ incarnation: Int64) -> String {
        "speaks as incarnation \(incarnation), which was never given out: a cloned image, or a registry restored from a"
            + " backup"
    }

    /// In the log alone.
    static let isFormer =
        "speaks as what was removed, or enrolled anew since, and the broker lets it in: it was not told, or its passwords were"
        + " put back from a backup (remove or enroll the device once more)"

    static let isLetInAgain =
        "was removed, and stands in the fleet's folder as enrolled, which was put back from a backup or is another one: remove it"
        + " again (fleetctl device remove), or enroll it"

    static func isNotEnrolled(_ device: DeviceID) -> String {
        "is not enrolled any more: taken out of the fleet while this controller was away, or after the backup that this"
            + " database is (run 'fleetctl device remove \(device)' again), or a registry restored from a backup"
    }
}
