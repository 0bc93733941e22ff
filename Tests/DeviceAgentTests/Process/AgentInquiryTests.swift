import FleetProtocol
import Foundation
import Logging
import TestSupport
import Testing

@testable import DeviceAgent

@Suite("Who asks the agent at the device")
struct AgentInquiryTests {
    @Test("is not kept waiting by one that has been stopped")
    func silentAgent() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path + "/s"
            let server = LinkServer(
                access: LinkAccess(folder: folder.path + "/apps.d"), logger: Logger(label: "test")
            ) { _ in }
            try await server.start(at: path)
            let inquiry = AgentInquiry(path: path, patience: .milliseconds(200))
            let error = #expect(throws: DeviceAgentError.self) { try inquiry.answer(to: .passcode(.lock)) }
            #expect(error?.message.hasPrefix("the agent at \(path) has not answered for 0.2 seconds") == true)
            await server.stop()
        }
    }
}
