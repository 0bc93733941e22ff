import Dispatch
import Synchronization

extension AppConnect {
    /// Asks the agent, and waits for half a minute at most.
    ///
    /// - Parameter question: The id under which the answer comes; nil where none is to be waited for.
    func inquire(_ question: (inout AppSession) -> (Int64?, [AppSession.Effect])) async -> AppSession.Answer {
        await withCheckedContinuation { continuation in
            let (id, aftermath) = state.withLock { state in
                let (id, effects) = question(&state.session)
                if let id { state.questions[id] = continuation }
                return (id, state.take(effects))
            }
            finish(aftermath)
            guard let id else { return continuation.resume(returning: .unanswered) }
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.answerTime) { [self] in giveUp(id) }
        }
    }

    private static let answerTime = DispatchTimeInterval.seconds(30)

    private func giveUp(_ question: Int64) {
        let continuation = state.withLock { state in
            state.session.forgetQuestion(question)
            return state.questions.removeValue(forKey: question)
        }
        continuation?.resume(returning: .unanswered)
    }
}
