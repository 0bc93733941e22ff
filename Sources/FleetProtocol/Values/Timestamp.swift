/// A point in time, in milliseconds since 1970 UTC; on the wire RFC 3339 in UTC with milliseconds,
/// `2026-11-21T07:24:00.000Z`.
package struct Timestamp: Hashable, Sendable, Comparable, CustomStringConvertible, JSONCodable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Years 0001 to 9999, which is what RFC 3339 can say.
    package static let range: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    package func advanced(bySeconds seconds: Int64) -> Timestamp {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        let (sum, overflow2) = milliseconds.addingReportingOverflow(product)
        if overflow || overflow2 {
            return Timestamp(milliseconds: seconds < 0 ? Self.range.lowerBound : Self.range.upperBound)
        }
        return Timestamp(milliseconds: min(max(sum, Self.range.lowerBound), Self.range.upperBound))
    }

    package var description: String { String(unsafeUninitializedCapacity: Self.length, initializingUTF8With: put) }

    static let length = 24

    func put(_ buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        let clamped = min(max(milliseconds, Self.range.lowerBound), Self.range.upperBound)
        let (days, inDay) = Self.floorDivision(clamped, 86_400_000)
        let (year, month, day) = Self.civil(days: days)
        let (second, fraction) = (inDay / 1_000, inDay % 1_000)
        func put(_ value: Int64, at position: Int, _ separator: Unicode.Scalar) {
            buffer[position] = Self.digit(value / 10)
            buffer[position + 1] = Self.digit(value)
            buffer[position + 2] = UInt8(ascii: separator)
        }
        // Each puts its separator where the next digits begin, where there is none.
        put(year / 100, at: 0, "-")
        put(year % 100, at: 2, "-")
        put(month, at: 5, "-")
        put(day, at: 8, "T")
        put(second / 3_600, at: 11, ":")
        put(second / 60 % 60, at: 14, ":")
        put(second % 60, at: 17, ".")
        buffer[20] = Self.digit(fraction / 100)
        put(fraction % 100, at: 21, "Z")
        return Self.length
    }

    /// The last decimal digit of a number, as it is written.
    private static func digit(_ value: Int64) -> UInt8 { UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10) }

    /// Reads any RFC 3339 time: also with an offset, and with more or fewer digits of a second.
    package init?(_ text: String) {
        var text = text
        guard let time = text.withUTF8({ Self.parse($0) }) else { return nil }
        self = time
    }

    private static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Timestamp? {
        var scanner = Scanner(bytes: text)
        guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2), scanner.take("-"),
            let day = scanner.number(2), scanner.take("T") || scanner.take("t"),
            let hour = scanner.number(2), scanner.take(":"), let minute = scanner.number(2), scanner.take(":"),
            let second = scanner.number(2),
            (1...12).contains(month), day >= 1, day <= daysIn(month: month, year: year), hour < 24, minute < 60,
            year >= 1
        else { return nil }
        var milliseconds: Int64 = 0
        if scanner.take(".") {
            guard let fraction = scanner.fraction() else { return nil }
            milliseconds = fraction
        }
        guard let offset = scanner.offset(), scanner.isAtEnd else { return nil }
        let minutes = days(year: year, month: month, day: day) * 1_440 + hour * 60 + minute - offset
        // A leap second ends a day, in UTC.
        guard second < 60 || second == 60 && minutes % 1_440 == 1_439 else { return nil }
        return Timestamp(milliseconds: (minutes * 60 + second) * 1_000 + milliseconds)
    }

    package init(from reader: inout JSONReader) throws {
        self = try reader.word {
            guard let time = Self.parse($0.bytes) else {
                throw FleetProtocolError(
                    .value,
                    "'\(Text.printable($0.text, limit: 40))' is no time: expected 2026-01-31T08:00:00.000Z")
            }
            return time
        }
    }

    package func write(to writer: inout JSONWriter) { writer.value(self) }

    // MARK: The calendar (Hinnant's days_from_civil and civil_from_days)

    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = floorDivision(shifted, 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivision(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9)
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func daysIn(month: Int64, year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivision(_ value: Int64, _ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    private struct Scanner {
        let bytes: UnsafeBufferPointer<UInt8>
        var position = 0
        var isAtEnd: Bool { position == bytes.count }

        mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            guard position < bytes.count, bytes[position] == UInt8(ascii: scalar) else { return false }
            position += 1
            return true
        }

        mutating func digit() -> Int64? {
            guard position < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position]) else {
                return nil
            }
            position += 1
            return Int64(bytes[position - 1] - UInt8(ascii: "0"))
        }

        mutating func number(_ count: Int) -> Int64? {
            var value: Int64 = 0
            for _ in 0..<count {
                guard let digit = digit() else { return nil }
                value = value * 10 + digit
            }
            return value
        }

        mutating func fraction() -> Int64? {
            guard var value = digit() else { return nil }
            var count = 1
            while let digit = digit() {
                if count < 3 { value = value * 10 + digit }
                count += 1
            }
            return count == 1 ? value * 100 : count == 2 ? value * 10 : value
        }

        /// Minutes east of UTC.
        mutating func offset() -> Int64? {
            if take("Z") || take("z") { return 0 }
            let sign: Int64
            if take("+") {
                sign = 1
            } else if take("-") {
                sign = -1
            } else {
                return nil
            }
            guard let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else {
                return nil
            }
            return sign * (hours * 60 + minutes)
        }
    }
}
