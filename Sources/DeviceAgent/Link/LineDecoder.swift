import FleetProtocol
import NIOCore

/// Cuts bytes into lines.
struct LineDecoder: ByteToMessageDecoder {
    typealias InboundOut = ByteBuffer

    struct LineTooLong: Error {}

    mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        let view = buffer.readableBytesView
        guard let end = view.firstIndex(of: UInt8(ascii: "\n")) else {
            guard view.count <= Link.maximumLine else { throw LineTooLong() }
            return .needMoreData
        }
        guard end - view.startIndex <= Link.maximumLine, let line = buffer.readSlice(length: end - view.startIndex)
        else { throw LineTooLong() }
        buffer.moveReaderIndex(forwardBy: 1)
        context.fireChannelRead(wrapInboundOut(line))
        return .continue
    }
}
