import Foundation
import GRDB

// GRDB binds and reads blobs as Foundation's Data; this is the only place that knows.
extension [UInt8] {
    var blob: Data { Data(self) }

    init(blob: Data) { self.init(blob) }
}
