/// Where in a device's life something happened: re-enrolments, boots, reports. Orders everything a device says.
package struct ReportOrder: Hashable, Sendable, Comparable {
    package var incarnation: Int64
    package var boot: Int64
    package var sequence: Int64

    package init(incarnation: Int64, boot: Int64, sequence: Int64) {
        self.incarnation = incarnation
        self.boot = boot
        self.sequence = sequence
    }

    package static func < (left: ReportOrder, right: ReportOrder) -> Bool {
        (left.incarnation, left.boot, left.sequence) < (right.incarnation, right.boot, right.sequence)
    }
}
