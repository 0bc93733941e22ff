import FleetProtocol

/// What names a request: somebody else's may have the same id.
struct RequestName: Hashable {
    let user: User
    let id: RandomID

    init(user: User, id: RandomID) {
        self.user = user
        self.id = id
    }

    /// Of the request that is answered there; nil for what is no answer.
    init?(_ response: Response, at topic: String) {
        guard case .response(let user, _)? = Address(topic: topic, in: SimulatedFleet.id) else { return nil }
        self.init(user: user, id: response.id)
    }
}
