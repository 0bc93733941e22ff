/// What policies ask of a passcode, as far as the passcode has it.
package struct PasscodeStrength: Hashable, Sendable {
    /// In characters as people count them.
    package let length: Int64
    /// Of ``SecureServicesValue/Passcode/classNames``.
    package let classes: Set<String>

    package init(of text: String) {
        length = Int64(text.count)
        classes = text.reduce(into: []) { $0.formUnion(Self.classes(of: $1)) }
    }

    private static func classes(of character: Character) -> Set<String> {
        if character.isASCII, character.isWholeNumber { return ["digit"] }
        guard character.isLetter else { return ["symbol"] }
        return character.isUppercase ? ["letter", "upper"] : character.isLowercase ? ["letter", "lower"] : ["letter"]
    }

    /// What it lacks, such as "6 characters at least, an upper-case letter"; nil when it has all.
    package func problem(for passcode: SecureServicesValue.Passcode) -> String? {
        var missing: [String] = []
        if let least = passcode.minLength, length < least { missing.append("\(least) characters at least") }
        for name in SecureServicesValue.Passcode.classNames
        where passcode.classes?.contains(name) == true && !classes.contains(name) {
            missing.append(Self.descriptions[name] ?? name)
        }
        return missing.isEmpty ? nil : missing.joined(separator: ", ")
    }

    private static let descriptions = [
        "digit": "a digit", "letter": "a letter", "lower": "a lower-case letter", "upper": "an upper-case letter",
        "symbol": "a symbol",
    ]
}
