/// The right to be the fleet's controller on this home: held as long as this object lives and the process runs.
package final class HomeLock: Sendable {
    private let lock: FileLock
    init(_ lock: FileLock) { self.lock = lock }
}
