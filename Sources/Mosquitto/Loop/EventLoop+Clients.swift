extension EventLoop {
    /// Makes a client that this loop drives; `start()` begins to connect.
    ///
    /// - Parameters:
    ///   - credit: How many messages it reads before it needs a `grant`; nil is without limit.
    ///   - handler: Receives its events on the loop's thread, and is let go after the last one.
    /// - Throws: `.invalidArgument`, naming the option.
    public func makeClient(
        _ options: ClientOptions, credit: Int? = nil, handler: @escaping LoopClient.Handler
    ) throws -> LoopClient {
        try options.validate()
        return LoopClient(options, on: self, credit: credit, handler: handler)
    }
}
