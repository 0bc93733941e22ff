import Dispatch
import Glibc
import Synchronization

extension AppConnect {
    /// Looks on the delegate's queue whether it has to be called.
    func drainLater(on queue: DispatchQueue) {
        queue.async { [self] in drain() }
    }

    /// Calls the delegate until nothing is due. Runs on the delegate's queue, so never twice at a time.
    private func drain() {
        state.withLock { $0.isDrainDue = false }
        while let (call, delegate, environment) = beginCall() {
            if case .connectionChanged(let connectionState) = call {
                environment.connectionChanged?(connectionState)
            } else {
                delegate?.run(call, from: self)
            }
            endCall(call)
        }
    }

    private func beginCall() -> (AppSession.Call, Callee?, Environment)? {
        let (begun, callee, aftermath) = state.withLock { state in
            // Held from here to the end of the call, so that a delegate that is found does not go before it; and out of the
            // lock, where it may be the last to hold it: whatever the delegate's deinit calls takes the lock.
            let callee = state.delegate.map(Callee.init)
            let (call, effects) = state.session.next(for: callee == nil ? nil : state.callbacks)
            let aftermath = state.take(effects)
            guard let call, let environment = state.environment else {
                return (nil as (AppSession.Call, Environment)?, callee, aftermath)
            }
            state.callThread = pthread_self()
            return ((call, environment), callee, aftermath)
        }
        finish(aftermath)
        return begun.map { ($0, callee, $1) }
    }

    private func endCall(_ call: AppSession.Call) {
        let (aftermath, waiters) = state.withLock { state in
            (state.take(state.session.returned(call)), state.callEnded())
        }
        finish(aftermath)
        for waiter in waiters { waiter.signal() }
    }

    private struct Callee: Sendable {
        let delegate: any AppConnectDelegate

        func run(_ call: AppSession.Call, from appConnect: AppConnect) { call.run(on: delegate, from: appConnect) }
    }
}
