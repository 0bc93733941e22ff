import FleetProtocol
import Synchronization

/// So many texts may be under way at a time, and so many of one app: it cannot keep the others' from the screen.
final class DisplayPlaces: Sendable {
    private let count: Int
    private let countOfOne: Int
    /// Nil are those that have gone.
    private let taken = Mutex<[AppID?: Int]>([:])

    init(_ count: Int, ofOneApp countOfOne: Int) {
        self.count = count
        self.countOfOne = countOfOne
    }

    func take(for app: AppID?) -> Bool {
        taken.withLock { taken in
            guard taken[app, default: 0] < countOfOne, taken.values.reduce(0, +) < count else { return false }
            taken[app, default: 0] += 1
            return true
        }
    }

    func giveBack(of app: AppID?) {
        taken.withLock { taken in
            let left = taken[app, default: 0] - 1
            taken[app] = left > 0 ? left : nil
        }
    }
}
