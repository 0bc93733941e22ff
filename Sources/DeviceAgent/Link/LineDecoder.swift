import FleetProtocol
import NIOCore

/// Cuts bytes into lines.
struct LineDecoder: ByteToMessageDecoder {
    typealias InboundOut = ByteBuffer

    struct LineTooLong: Error {}

    /// How many bytes have been looked through for an end: whoever sends single bytes costs no more than others.
    private var searched = 0

    mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        let view = buffer.readableBytesView
        guard let end = view.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) else {
            guard view.count <= Link.maximumLine else { throw LineTooLong() }
            searched = view.count
            return .needMoreData
        }
        searched = 0
        guard end - view.startIndex <= Link.maximumLine, let line = buffer.readSlice(length: end - view.startIndex)
        else { throw LineTooLong() }
        buffer.moveReaderIndex(forwardBy: 1)
        context.fireChannelRead(wrapInboundOut(line))
        return .continue
    }
}
