import FleetProtocol

extension Schedule {
    /// In some worlds there are meetings.
    mutating func addMeetings(_ theme: Theme?) {
        var random = SplitMix64(seed: seed ^ 0x3EE7)
        let fitting = Meeting.fitting(theme, broker)
        guard random.chance(theme == nil ? 15 : 40), !fitting.isEmpty else { return }
        for _ in 0...random.below(2) {
            var script = MeetingScript(self, random, from: steps[random.below(steps.count)].at)
            script.play(fitting[random.below(fitting.count)])
            for step in script.steps { steps.insert(step, inOrderOf: \.at) }
            random = script.random
        }
    }
}
