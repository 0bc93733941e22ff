internal import CMosquitto
internal import Glibc

/// A thread of the operating system that takes no signals: they stay with the program's own threads, and a write on a
/// broken TLS connection does not end the process by SIGPIPE.
struct SystemThread: Sendable {
    private let id: pthread_t

    /// Starts `body` on a new thread; `name` is cut to the 15 bytes that the kernel keeps.
    init(name: String, _ body: @escaping @Sendable () -> Void) throws(MosquittoError) {
        final class Box: Sendable {
            let name: String
            let body: @Sendable () -> Void
            init(_ name: String, _ body: @escaping @Sendable () -> Void) {
                self.name = name
                self.body = body
            }
        }
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var id = pthread_t()
        let box = Unmanaged.passRetained(Box(name, body))
        let failure = pthread_create(
            &id, nil,
            { raw in
                guard let raw else { return nil }
                let box = Unmanaged<Box>.fromOpaque(raw).takeRetainedValue()
                _ = fleetbus_name_thread(String(decoding: Array(box.name.utf8.prefix(15)), as: UTF8.self))
                box.body()
                return nil
            }, box.toOpaque())
        if failure != 0 {
            box.release()
            throw .system(failure, "starting the thread \(name)")
        }
        self.id = id
    }

    /// Waits for the thread's end.
    func join() { pthread_join(id, nil) }

    func detach() { pthread_detach(id) }

    /// Names the calling thread, for comparing.
    static var current: UInt { UInt(pthread_self()) }
}
