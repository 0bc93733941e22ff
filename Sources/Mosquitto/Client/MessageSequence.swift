/// The messages of a client, in the order the broker sent them.
///
/// Bounded: beyond the client's `messageBuffer` its socket is not read, so that the broker waits; nothing is dropped by
/// the client. (What the broker does with what waits is its own affair: Mosquitto drops beyond `max_queued_messages`,
/// unless that is 0.) Answers to publishes and pings wait behind the messages, so
/// - a loop over the messages must not await a publish while more messages may come than fit: publish from another task;
/// - a consumer that falls behind for longer than the keep-alive loses the connection; what was read is still delivered.
///
/// The sequence has one consumer, and ends when the client is closed and all is consumed, or the task is cancelled.
public struct MessageSequence: AsyncSequence, Sendable {
    /// Hands out one message after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: MessageSource
        private var batch: [Message] = []
        private var index = 0

        init(source: MessageSource) {
            self.source = source
        }

        /// The next message.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Message? {
            if index == batch.count {
                batch = []
                index = 0
                guard let next = await source.next(most: Swift.max(1, source.buffer.capacity / 4)) else { return nil }
                batch = next
            }
            defer { index += 1 }
            return batch[index]
        }

        /// The next message.
        @concurrent public mutating func next() async -> Message? {
            await next(isolation: nil)
        }
    }

    let source: MessageSource

    /// Begins to consume.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }

    /// The same messages, as many at a time as are there, up to `most`: for consumers that commit in batches.
    public func batches(of most: Int = 1000) -> Batches { Batches(source: source, most: Swift.max(1, most)) }

    /// The messages in batches, each with one message at least.
    public struct Batches: AsyncSequence, Sendable {
        /// Hands out one batch after the other.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let source: MessageSource
            let most: Int

            /// The next batch; the one before counts as consumed.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> [Message]? {
                await source.next(most: most)
            }

            /// The next batch; the one before counts as consumed.
            @concurrent public mutating func next() async -> [Message]? {
                await source.next(most: most)
            }
        }

        let source: MessageSource
        let most: Int

        /// Begins to consume.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source, most: most) }
    }
}

/// A buffer, and the client whose reading it bounds.
struct MessageSource: Sendable {
    let buffer: MessageBuffer
    let client: LoopClient

    func next(most: Int) async -> [Message]? {
        await buffer.next(most: most) { count in client.loop.execute { client.grant(count) } }
    }
}
