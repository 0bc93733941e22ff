import FleetWorld
import Testing

/// A schedule that broke a promise once, as short as it could be made.
struct KeptSchedule: Sendable, CustomTestStringConvertible {
    let what: String
    let schedule: Schedule

    var testDescription: String { what }

    static let all: [KeptSchedule] = [
        KeptSchedule(
            what: "a device whose presence and reports came before the controller did is shown as connected",
            schedule: Schedule(
                seed: 1, devices: 4, apps: 1, broker: .lossy, steps: [])),
        KeptSchedule(
            what: "a device that was greeted before is shown as connected after the controller's clock was set back",
            schedule: Schedule(
                seed: 104, devices: 2, apps: 1,
                steps: [
                    .init(29_112, .cutDevice(1, noticedAfter: 0)), .init(32_464, .setControllerClock(-30)),
                    .init(34_186, .cutController(noticedAfter: 32_586)),
                    .init(34_208, .crashController(effects: 1, downFor: 101)),
                ])),
        KeptSchedule(
            what: "an agent that died between destroying keys and storing it has keys again when it is authorized",
            schedule: Schedule(
                seed: 3_618_899_834_231_065, devices: 2, apps: 3,
                steps: [
                    .init(906, .crashApp(1, 0)), .init(2_864, .fillDisk(1)),
                    .init(2_892, .request(0, .apply(app: 1, .all, aspect: 0, variant: 5, isBased: false))),
                    .init(2_895, .request(0, .apply(app: 0, .group(0), aspect: 0, variant: 4, isBased: false))),
                    .init(2_899, .crashController(effects: 9, downFor: 2_963)),
                    .init(2_924, .request(0, .apply(app: 1, .group(0), aspect: 0, variant: 4, isBased: false))),
                    .init(8_023, .request(1, .apply(app: 1, .all, aspect: 0, variant: 1, isBased: false))),
                ])),
        KeptSchedule(
            what: "a document that broker and restored controller forgot, and a device follows, is withdrawn",
            schedule: Schedule(
                seed: 345, devices: 1, apps: 3,
                steps: [
                    .init(4_826, .backUpController),
                    .init(14_899, .request(0, .apply(app: 2, .device(0), aspect: 0, variant: 4, isBased: true))),
                    .init(16_899, .crashBroker(downFor: 1_909)), .init(18_588, .putBackController(withFolder: true)),
                ])),
        KeptSchedule(
            what: "what only a copy has reported of a device goes with it when that is taken out of the fleet",
            schedule: Schedule(
                seed: 3_631_236_315_848_626, devices: 4, apps: 2,
                steps: [
                    .init(1_857, .crashBroker(downFor: 1_098)), .init(1_859, .clone(2)), .init(1_865, .stopAgent(0)),
                    .init(3_540, .remove(1)), .init(3_559, .enroll(3, isNew: false)), .init(5_770, .clone(1)),
                    .init(11_948, .request(1, .apply(app: 1, .all, aspect: 0, variant: 0, isBased: false))),
                    .init(14_153, .remove(2)),
                ])),
        KeptSchedule(
            what: "a device that is enrolled again says again what was cleared with what it had left",
            schedule: Schedule(
                seed: 4_409_325_905_697_995, devices: 2, apps: 3,
                steps: [
                    .init(20_822, .crashBroker(downFor: 2_091)), .init(23_285, .crashBroker(downFor: 897)),
                    .init(24_431, .request(1, .apply(app: 0, .group(1), aspect: 1, variant: 0, isBased: false))),
                    .init(24_717, .unplug(0, 121_649)), .init(29_580, .remove(1)),
                    .init(30_824, .enroll(1, isNew: false)),
                    .init(30_854, .crashController(effects: 11, downFor: 2_566)), .init(32_738, .unplug(0, 187_785)),
                    .init(32_780, .request(0, .apply(app: 2, .all, aspect: 2, variant: 5, isBased: false))),
                    .init(33_931, .crashBroker(downFor: 1_920)),
                ])),
        KeptSchedule(
            what:
                "a device tells of the epoch that its enrolment knew to a controller that was put back from before it",
            schedule: Schedule(
                seed: 1_743_587_682_450_346, devices: 3, apps: 1,
                steps: [
                    .init(18, .crashController(effects: 7, downFor: 1_919)), .init(1_166, .crashBroker(downFor: 2_311)),
                    .init(207_277, .ageBroker(by: 3, downFor: 597)), .init(207_907, .remove(2)),
                    .init(207_919, .backUpController),
                    .init(207_945, .request(1, .group(0, priority: 2, members: 4))),
                    .init(207_968, .enroll(0, isNew: true)), .init(208_537, .putBackController(withFolder: false)),
                    .init(210_253, .putBackController(withFolder: true)),
                    .init(212_635, .request(1, .apply(app: 0, .all, aspect: 3, variant: 5, isBased: false))),
                    .init(212_642, .enroll(1, isNew: true)), .init(213_797, .reinstallApp(0, 0)),
                    .init(213_822, .putBackController(withFolder: false)),
                    .init(216_386, .ageBroker(by: 4, downFor: 2_243)),
                    .init(220_707, .putBackController(withFolder: true)), .init(220_721, .crashBroker(downFor: 2_118)),
                ])),
        KeptSchedule(
            what: "an app that retires itself takes a retirement by its policy, which was under way, for no answer",
            schedule: Schedule(
                seed: 5_001_627, devices: 1, apps: 1,
                steps: [
                    .init(5_341, .crashBroker(downFor: 2_245)),
                    .init(5_410, .request(0, .apply(app: 0, .all, aspect: 4, variant: 3, isBased: false))),
                    .init(6_813, .request(1, .apply(app: 0, .device(0), aspect: 0, variant: 5, isBased: false))),
                    .init(6_857, .stopAgent(0)), .init(7_044, .request(1, .group(1, priority: 1, members: 0))),
                    .init(9_490, .fillDisk(0)), .init(10_882, .retire(0, 0)),
                ])),
        KeptSchedule(
            what: "an app that retires itself in its ready, and is authorized before that has returned, is authorized",
            schedule: Schedule(
                seed: 602_979_355_313_141, devices: 1, apps: 2,
                steps: [
                    .init(3_069, .retire(0, 1)),
                    .init(3_092, .request(0, .apply(app: 1, .all, aspect: 0, variant: 2, isBased: false))),
                ])),
        KeptSchedule(
            what: "a device that was removed and enrolled again follows nothing that was for the removed one",
            schedule: Schedule(
                seed: 200, devices: 1, apps: 1,
                steps: [
                    .init(3_000, .request(0, .apply(app: 0, .device(0), aspect: 2, variant: 1, isBased: false))),
                    .init(3_100, .request(0, .group(0, priority: 1, members: 1))),
                    .init(6_000, .remove(0)), .init(9_000, .enroll(0, isNew: false)),
                ])),
        KeptSchedule(
            what: "a device that was enrolled again is one of the fleet, though the backup has it as removed",
            schedule: Schedule(
                seed: 3_613, devices: 1, apps: 2,
                steps: [
                    .init(5_456, .remove(0)), .init(7_315, .backUpController), .init(18_884, .enroll(0, isNew: false)),
                    .init(25_000, .putBackController(withFolder: true)),
                ])),
        KeptSchedule(
            what: "what was said of an incarnation that the controller never heard is cleared with the removed device",
            schedule: Schedule(
                seed: 5_309, devices: 1, apps: 2,
                steps: [
                    .init(1_322, .crashController(effects: 8, downFor: 472)), .init(1_342, .enroll(0, isNew: false)),
                    .init(1_531, .remove(0)),
                ])),
        KeptSchedule(
            what: "a limit that comes when it has passed, and is withdrawn at once, wipes nobody",
            schedule: Schedule(
                seed: 14_197, devices: 4, apps: 2, broker: .lossy,
                steps: [
                    .init(51_286, .crashApp(0, 1)), .init(53_604, .crashController(effects: 5, downFor: 180_877)),
                    .init(55_387, .request(0, .deleteGroup(1))),
                    .init(57_763, .request(0, .apply(app: 0, .all, aspect: 3, variant: 4, isBased: false))),
                    .init(253_494, .request(0, .delete(app: 0, .all))),
                ])),
        KeptSchedule(
            what: "a limit that is withdrawn in the moment in which a clock jumps blocks nobody",
            schedule: Schedule(
                seed: 901_003, devices: 1, apps: 1,
                steps: [
                    .init(929, .request(0, .apply(app: 0, .all, aspect: 3, variant: 2, isBased: false))),
                    .init(1_536, .request(0, .apply(app: 0, .all, aspect: 3, variant: 1, isBased: false))),
                    .init(1_718, .setClock(0, 2_000_000_000)),
                ])),
        KeptSchedule(
            what: "a controller that was put back is contact at once, also where its signed times had run ahead",
            schedule: Schedule(
                seed: 2_006_572, devices: 2, apps: 2,
                steps: [
                    .init(2, .request(1, .apply(app: 0, .device(0), aspect: 3, variant: 4, isBased: false))),
                    .init(2_603, .crashController(effects: 4, downFor: 2_854)), .init(5_121, .backUpController),
                    .init(11_165, .crashController(effects: 5, downFor: 1_805)),
                    .init(12_143, .request(0, .group(1, priority: 0, members: 1))), .init(14_581, .attempt(0, 0)),
                    .init(35_934, .putBackController(withFolder: true)),
                ])),
        KeptSchedule(
            what: "an authorized app for which a passcode is required has no secure services",
            schedule: Schedule(
                seed: 1, devices: 1, apps: 1,
                steps: [
                    .init(2_000, .request(0, .apply(app: 0, .all, aspect: 0, variant: 0, isBased: false))),
                    .init(4_000, .request(0, .apply(app: 0, .all, aspect: 3, variant: 0, isBased: false))),
                ])),
        KeptSchedule(
            what: "what an app was being told when it retired itself is told anew, so that its answers count",
            schedule: Schedule(
                seed: 1_593_206_438_157_357, devices: 3, apps: 1, broker: .hostile,
                steps: [
                    .init(423, .forge(2, .moved)),
                    .init(430, .request(1, .apply(app: 0, .all, aspect: 4, variant: 5, isBased: false))),
                    .init(430, .enterCode(2, 0, isRight: false)), .init(2_481, .answer(0, 0)),
                    .init(2_494, .request(0, .group(0, priority: 1, members: 5))),
                    .init(2_507, .request(1, .apply(app: 0, .group(0), aspect: 1, variant: 5, isBased: false))),
                    .init(2_536, .stopAgent(2)), .init(2_563, .forge(0, .otherFleet)),
                    .init(3_508, .setControllerClock(-30)),
                    .init(3_508, .request(0, .group(1, priority: 1, members: 4))), .init(4_917, .answer(2, 0)),
                    .init(6_435, .retire(0, 0)), .init(6_450, .forge(1, .altered)),
                    .init(7_868, .forge(1, .otherFleet)), .init(12_349, .answer(0, 0)),
                    .init(15_121, .request(1, .apply(app: 0, .device(0), aspect: 1, variant: 2, isBased: false))),
                    .init(16_535, .request(1, .apply(app: 0, .group(0), aspect: 0, variant: 1, isBased: false))),
                ])),
        KeptSchedule(
            what: "a device that is enrolled again is known as enrolled",
            schedule: Schedule(
                seed: 4_000_269, devices: 1, apps: 1,
                steps: [.init(153_853, .remove(0)), .init(159_197, .enroll(0, isNew: false))])),
        KeptSchedule(
            what: "a presence that a status of the agent's next start has overtaken is not taken for a copy's",
            schedule: Schedule(
                seed: 4_002_604, devices: 1, apps: 1,
                steps: [
                    .init(24, .crashBroker(downFor: 434)), .init(38, .request(0, .group(0, priority: 1, members: 0))),
                    .init(712, .request(1, .group(1, priority: 2, members: 1))), .init(2_996, .question(1, 4)),
                    .init(3_009, .renewTrust), .init(4_466, .cutOperator(0)), .init(4_496, .fillDisk(0)),
                    .init(5_183, .request(1, .apply(app: 0, .all, aspect: 0, variant: 4, isBased: true))),
                ])),
        KeptSchedule(
            what: "a controller whose clock is set back while nothing happens goes on with its heartbeats",
            schedule: Schedule(
                seed: 300_023_826, devices: 2, apps: 1,
                steps: [
                    .init(3_011, .request(1, .apply(app: 0, .device(1), aspect: 3, variant: 4, isBased: true))),
                    .init(5_268, .setControllerClock(86_400)), .init(545_980, .setControllerClock(-30)),
                ])),
        KeptSchedule(
            what: "a later retirement is latched when it takes effect, before anything is certain",
            schedule: Schedule(
                seed: 1_500_955, devices: 1, apps: 2,
                steps: [
                    .init(6_241, .request(1, .apply(app: 1, .device(0), aspect: 0, variant: 5, isBased: false))),
                    .init(6_242, .request(1, .apply(app: 1, .all, aspect: 0, variant: 5, isBased: true))),
                    .init(12_749, .remove(0)), .init(17_206, .enroll(0, isNew: false)),
                ])),
        KeptSchedule(
            what: "what a broker has kept of a device that was taken out is not shown when that is enrolled again",
            schedule: Schedule(
                seed: 1, devices: 1, apps: 1,
                steps: [
                    .init(5_000, .saveBroker), .init(6_000, .remove(0)), .init(9_000, .enroll(0, isNew: false)),
                    .init(9_010, .unplug(0, 60_000)), .init(12_000, .crashBroker(downFor: 500)),
                    .init(20_000, .pause),
                ])),
        KeptSchedule(
            what: "an app that retires itself, and is retired later in the same moment, loosens nothing",
            schedule: Schedule(
                seed: 85_003_160, devices: 1, apps: 1,
                steps: [
                    .init(407, .request(1, .group(0, priority: 0, members: 1))),
                    .init(419, .request(0, .group(1, priority: 0, members: 0))),
                    .init(421, .request(1, .apply(app: 0, .all, aspect: 2, variant: 5, isBased: false))),
                    .init(437, .request(0, .apply(app: 0, .all, aspect: 0, variant: 4, isBased: true))),
                    .init(1_384, .request(0, .apply(app: 0, .all, aspect: 4, variant: 3, isBased: false))),
                    .init(3_042, .request(0, .apply(app: 0, .group(1), aspect: 2, variant: 1, isBased: false))),
                    .init(4_559, .request(0, .apply(app: 0, .device(0), aspect: 4, variant: 5, isBased: true))),
                    .init(6_309, .request(0, .apply(app: 0, .all, aspect: 0, variant: 4, isBased: false))),
                    .init(6_429, .request(0, .apply(app: 0, .group(0), aspect: 0, variant: 1, isBased: false))),
                    .init(7_241, .request(1, .deleteGroup(0))), .init(9_048, .stopAgent(0)),
                    .init(9_078, .retire(0, 0)),
                    .init(9_160, .request(0, .apply(app: 0, .all, aspect: 3, variant: 5, isBased: true))),
                    .init(9_177, .request(0, .apply(app: 0, .all, aspect: 3, variant: 1, isBased: false))),
                    .init(9_573, .request(0, .group(1, priority: 0, members: 1))),
                    .init(10_808, .request(0, .apply(app: 0, .all, aspect: 0, variant: 5, isBased: true))),
                ])),
        KeptSchedule(
            what: "a controller that is put back twice from one backup begins two epochs: nobody follows the first",
            schedule: Schedule(
                seed: 31_143, devices: 2, apps: 2,
                steps: [
                    .init(287, .request(0, .apply(app: 1, .group(1), aspect: 0, variant: 1, isBased: false))),
                    .init(357, .saveBroker), .init(375, .reboot(0)), .init(2_533, .crashBroker(downFor: 906)),
                    .init(4_562, .backUpController),
                    .init(6_142, .request(1, .apply(app: 1, .all, aspect: 3, variant: 1, isBased: false))),
                    .init(6_148, .unplug(1, 1_903)),
                    .init(6_187, .request(1, .apply(app: 0, .device(0), aspect: 2, variant: 2, isBased: false))),
                    .init(9_501, .request(0, .apply(app: 1, .group(0), aspect: 2, variant: 0, isBased: false))),
                    .init(11_643, .request(0, .apply(app: 0, .all, aspect: 1, variant: 3, isBased: true))),
                    .init(12_150, .saveBroker), .init(12_176, .putBackController(withFolder: true)),
                    .init(12_185, .request(0, .apply(app: 0, .group(0), aspect: 0, variant: 0, isBased: false))),
                    .init(14_273, .request(1, .deleteGroup(0))),
                    .init(15_985, .request(0, .apply(app: 0, .device(1), aspect: 1, variant: 2, isBased: false))),
                    .init(16_492, .putBackController(withFolder: true)),
                    .init(18_970, .request(1, .apply(app: 0, .all, aspect: 1, variant: 0, isBased: true))),
                    .init(18_978, .crashBroker(downFor: 2_815)), .init(21_611, .reboot(1)),
                ])),
        KeptSchedule(
            what:
                "a device that was shown with a warning about its documents, and comes back with them, is asked again",
            schedule: Schedule(
                seed: 1_017_229_651_901_784, devices: 3, apps: 1, broker: .hostile,
                steps: [
                    .init(420_710, .forge(1, .withheld)), .init(420_925, .renewTrust),
                    .init(1_801_245, .forge(2, .overwritten)),
                ])),
        KeptSchedule(
            what: "such a device is asked until what is new may not be under way any more",
            schedule: Schedule(
                seed: 226_174_029_355_706, devices: 2, apps: 1, broker: .hostile,
                steps: [
                    .init(181_666, .forge(1, .withheld)), .init(186_841, .cutController(noticedAfter: 0)),
                    .init(332_882, .request(0, .group(0, priority: 0, members: 3))),
                    .init(
                        1_720_396, .request(0, .apply(app: 0, .group(0), aspect: 2, variant: 2, isBased: false))),
                ])),
        KeptSchedule(
            what: "a level whose time is over ends while a newer document waits to be certain",
            schedule: Schedule(
                seed: 3_216_567_447_286_283, devices: 1, apps: 3,
                steps: [
                    .init(1_892, .renewTrust),
                    .init(4_193, .request(1, .apply(app: 1, .all, aspect: 4, variant: 1, isBased: false))),
                    .init(4_223, .renewTrust), .init(4_236, .enterCode(0, 1, isRight: true)),
                    .init(6_276, .reboot(0)),
                    .init(6_288, .request(1, .apply(app: 1, .group(1), aspect: 4, variant: 5, isBased: false))),
                    .init(7_314, .request(1, .apply(app: 2, .all, aspect: 4, variant: 1, isBased: false))),
                    .init(8_431, .request(1, .apply(app: 2, .device(0), aspect: 4, variant: 2, isBased: false))),
                    .init(9_608, .crashBroker(downFor: 1_002)), .init(10_670, .reboot(0)),
                ])),
        KeptSchedule(
            what: "limits that an agent that stood still finds behind its first hello count from that",
            schedule: Schedule(
                seed: 1_405_231_876_968_482, devices: 4, apps: 2,
                steps: [
                    .init(901, .stall(3, 198_527, isAsleep: false)),
                    .init(7_320, .request(0, .apply(app: 1, .all, aspect: 4, variant: 3, isBased: false))),
                    .init(359_195, .clone(0)),
                ])),
        KeptSchedule(
            what: "a change that comes with the word that something was lost makes no device forget what it brings",
            schedule: Schedule(
                seed: 10_131_143, devices: 3, apps: 2, broker: .lossy,
                steps: [
                    .init(11, .answer(2, 0)), .init(880, .saveBroker), .init(1_155, .saveBroker),
                    .init(2_836, .renewTrust),
                    .init(2_860, .request(1, .apply(app: 0, .all, aspect: 0, variant: 3, isBased: false))),
                    .init(4_801, .cutDevice(0, noticedAfter: 0)),
                    .init(4_816, .request(0, .apply(app: 0, .device(2), aspect: 2, variant: 2, isBased: false))),
                    .init(4_838, .renewTrust), .init(5_488, .saveBroker),
                ])),
        KeptSchedule(
            what: "what a broker has refused is not asked for again when its group has been left meanwhile",
            schedule: Schedule(
                seed: 2_617_359_150_027_508, devices: 8, apps: 2,
                steps: [
                    .init(938, .stallBroker(65_623)), .init(1_365, .crashBroker(downFor: 408)),
                    .init(1_384, .fillDisk(4, 54_901)), .init(296_182, .freeze(5, 55_845, isDead: true)),
                    .init(298_149, .unplug(1, 198_299)), .init(298_167, .answer(0, 1)),
                    .init(298_177, .request(0, .apply(app: 1, .all, aspect: 3, variant: 0, isBased: false))),
                    .init(308_159, .request(1, .group(0, priority: 1, members: 185))),
                    .init(308_283, .request(0, .deleteGroup(0))),
                ])),
        KeptSchedule(
            what: "an event of a device that was taken out shows it as connected no more when it is enrolled again",
            schedule: Schedule(
                seed: 6_000_853, devices: 1, apps: 3,
                steps: [
                    .init(165_883, .cutDevice(0, noticedAfter: 0)), .init(165_886, .remove(0)),
                    .init(166_689, .stopAgent(0)),
                    .init(167_144, .request(0, .apply(app: 1, .group(0), aspect: 0, variant: 2, isBased: false))),
                    .init(168_978, .enroll(0, isNew: false)), .init(169_435, .reboot(0)),
                ])),
        KeptSchedule(
            what: "what a restored controller has signed again, and the broker has refused, is forgotten by nobody",
            schedule: Schedule(
                seed: 35_004_109, devices: 4, apps: 2,
                steps: [
                    .init(11, .request(1, .apply(app: 0, .all, aspect: 3, variant: 5, isBased: false))),
                    .init(40, .crashAgent(0, effects: 5)), .init(303, .backUpController),
                    .init(303, .refuseSaid(nil, 52_257)), .init(131_244, .setControllerClock(-17_280_000)),
                    .init(134_005, .unplug(3, 279_391)), .init(134_019, .enroll(0, isNew: false)),
                    .init(258_675, .putBackController(withFolder: false)),
                    .init(261_137, .refuseSaid(nil, 4_875)),
                    .init(571_834, .request(0, .apply(app: 0, .device(1), aspect: 3, variant: 1, isBased: false))),
                ])),
        KeptSchedule(
            what: "a device that installs an app while it waits for its hello is told of that app's documents too",
            schedule: Schedule(
                seed: 2_568_412_897_629_142, devices: 3, apps: 3,
                steps: [
                    .init(90_524, .enroll(2, isNew: true)),
                    .init(91_382, .request(0, .apply(app: 2, .group(0), aspect: 0, variant: 3, isBased: false))),
                    .init(91_407, .enroll(2, isNew: false)), .init(91_540, .fillDisk(1, 3_966)),
                    .init(94_000, .request(1, .apply(app: 2, .all, aspect: 0, variant: 2, isBased: false))),
                    .init(96_467, .request(1, .apply(app: 1, .all, aspect: 0, variant: 0, isBased: false))),
                    .init(373_860, .request(0, .apply(app: 1, .device(2), aspect: 0, variant: 0, isBased: false))),
                    .init(373_866, .enroll(1, isNew: true)), .init(375_581, .renewTrust),
                    .init(375_598, .request(0, .delete(app: 2, .group(0)))),
                    .init(376_175, .request(0, .apply(app: 0, .all, aspect: 4, variant: 1, isBased: false))),
                ])),
        KeptSchedule(
            what: "a request of which half was shown first is answered as that half, also behind a restart",
            schedule: Schedule(
                seed: 2_568_412_897_638_390, devices: 1, apps: 1, broker: .hostile,
                steps: [
                    .init(275, .forge(0, .replayed)),
                    .init(879, .unplug(0, 348_093)),
                    .init(50_354, .renewTrust),
                    .init(51_812, .request(0, .group(1, priority: 0, members: 0))),
                    .init(53_327, .renewTrust),
                    .init(53_650, .stallBroker(30_515)),
                    .init(54_063, .forge(0, .forgedHello)),
                    .init(54_069, .cutController(noticedAfter: 0)),
                    .init(54_074, .ageBroker(by: 2, downFor: 2_219)),
                    .init(54_104, .request(0, .apply(app: 0, .device(0), aspect: 4, variant: 3, isBased: false))),
                    .init(54_130, .request(1, .apply(app: 0, .all, aspect: 3, variant: 1, isBased: false))),
                    .init(56_185, .forge(0, .foreignKey)),
                    .init(57_460, .stallController(120_327)),
                    .init(233_694, .forge(0, .foreignKey)),
                    .init(233_722, .request(1, .apply(app: 0, .all, aspect: 3, variant: 2, isBased: false))),
                    .init(235_815, .forge(0, .late)),
                    .init(236_897, .refuse(0, 0)),
                    .init(238_406, .forge(0, .emptied)),
                    .init(238_432, .forge(0, .replayedReport)),
                ])),
        KeptSchedule(
            what:
                "what else is lost leaves out nothing of which documents a device that waits for its hello is to have",
            schedule: Schedule(
                seed: 1_732_562_047_357_522, devices: 8, apps: 2, broker: .lossy,
                steps: [
                    .init(1_519, .request(1, .group(0, priority: 1, members: 181))),
                    .init(3_443, .request(0, .apply(app: 1, .group(1), aspect: 4, variant: 1, isBased: false))),
                    .init(3_463, .request(1, .apply(app: 1, .device(0), aspect: 4, variant: 0, isBased: false))),
                    .init(3_850, .request(1, .group(1, priority: 1, members: 214))),
                    .init(310_654, .request(0, .delete(app: 0, .all))),
                ])),
        KeptSchedule(
            what: "half a request that comes before the whole one decides what both are answered",
            schedule: Schedule(
                seed: 1_732_562_047_359_251, devices: 4, apps: 3, broker: .hostile,
                steps: [
                    .init(2_121, .forge(3, .replayedResponse)),
                    .init(2_136, .reinstallApp(3, 1)),
                    .init(3_882, .forge(3, .altered)),
                    .init(5_325, .forge(3, .moved)),
                    .init(5_349, .renewTrust),
                    .init(5_371, .forge(2, .moved)),
                    .init(5_391, .request(0, .apply(app: 2, .all, aspect: 2, variant: 5, isBased: false))),
                    .init(5_974, .forge(3, .replayedReport)),
                ])),
        KeptSchedule(
            what: "an app says two things, is killed and is there again, all in one moment of its agent's",
            schedule: Schedule(
                seed: 3_310_596_670_995_593, devices: 1, apps: 3,
                steps: [
                    .init(23, .request(0, .apply(app: 2, .all, aspect: 4, variant: 5, isBased: false))),
                    .init(64, .ageBroker(by: 3, downFor: 1_185)),
                    .init(144_334, .renewTrust),
                    .init(145_750, .request(1, .group(0, priority: 2, members: 0))),
                    .init(147_658, .reboot(0)),
                    .init(149_385, .crashController(effects: 3, downFor: 2_068)),
                    .init(149_817, .crashBroker(downFor: 2_786)),
                    .init(153_360, .stopAgent(0)),
                    .init(153_682, .request(1, .apply(app: 1, .all, aspect: 0, variant: 5, isBased: false))),
                    .init(155_083, .freeze(0, 59_775, isDead: true)),
                    .init(155_935, .attempt(0, 2)),
                    .init(155_952, .crashApp(0, 2)),
                ])),
        KeptSchedule(
            what:
                "an app answers what it was told before it retired itself, and that as well, in one moment of its agent's",
            schedule: Schedule(
                seed: 1_392_951_036_132_982, devices: 1, apps: 2,
                steps: [
                    .init(30, .crashBroker(downFor: 2_450)),
                    .init(659, .answer(0, 0)),
                    .init(2_525, .request(0, .apply(app: 1, .device(0), aspect: 0, variant: 3, isBased: false))),
                    .init(4_031, .reinstallApp(0, 1)),
                    .init(7_501, .enroll(0, isNew: false)),
                    .init(9_630, .retire(0, 0)),
                    .init(10_878, .retire(0, 1)),
                    .init(10_929, .stall(0, 177_043, isAsleep: true)),
                ])),
        KeptSchedule(
            what: "what an app says late of an equal value that it had before it retired itself is true of it",
            schedule: Schedule(
                seed: 2_714_580_473_671_281, devices: 3, apps: 1,
                steps: [
                    .init(775, .reboot(2)),
                    .init(791, .crashController(effects: 4, downFor: 2_819)),
                    .init(3_566, .answer(2, 0)),
                    .init(5_470, .reboot(2)),
                    .init(5_806, .reboot(1)),
                    .init(164_757, .answer(2, 0)),
                    .init(165_765, .cutDevice(0, noticedAfter: 0)),
                    .init(167_862, .backUpController),
                    .init(171_575, .enterCode(2, 0, isRight: false)),
                    .init(173_622, .request(0, .apply(app: 0, .group(0), aspect: 3, variant: 5, isBased: false))),
                    .init(175_214, .cutDevice(1, noticedAfter: 1_311)),
                    .init(175_221, .request(0, .apply(app: 0, .device(2), aspect: 1, variant: 0, isBased: false))),
                    .init(180_354, .crashApp(0, 0)),
                    .init(180_389, .crashBroker(downFor: 2_210)),
                    .init(180_389, .putBackController(withFolder: true)),
                    .init(181_072, .request(0, .delete(app: 0, .group(0)))),
                    .init(181_100, .crashController(effects: 5, downFor: 137_544)),
                    .init(182_438, .saveBroker),
                    .init(184_809, .request(0, .apply(app: 0, .all, aspect: 2, variant: 0, isBased: false))),
                    .init(186_057, .retire(2, 0)),
                    .init(186_075, .request(1, .apply(app: 0, .device(2), aspect: 4, variant: 3, isBased: true))),
                    .init(187_084, .answer(2, 0)),
                ])),
        KeptSchedule(
            what:
                "a broker that refuses the controller's keys for a while has its guard refuse what is signed with them, until they are said again",
            schedule: Schedule(
                seed: 7_000_391, devices: 8, apps: 2, broker: .lossy,
                steps: [
                    .init(6, .reboot(1)),
                    .init(30, .refuseSaid(nil, 68_409)),
                    .init(2_377, .request(1, .apply(app: 0, .device(4), aspect: 4, variant: 2, isBased: false))),
                ])),
        KeptSchedule(
            what:
                "a membership that its device reads before the guard knows the keys lets it read its groups afterwards",
            schedule: Schedule(
                seed: 95_100_763, devices: 8, apps: 3,
                steps: [
                    .init(1_941, .request(0, .apply(app: 2, .group(0), aspect: 0, variant: 4, isBased: false))),
                    .init(2_474, .crashController(effects: 8, downFor: 2_825)),
                    .init(2_499, .request(0, .group(1, priority: 0, members: 111))),
                    .init(2_509, .stopAgent(3)),
                    .init(4_987, .cutDevice(7, noticedAfter: 0)),
                    .init(6_702, .request(0, .apply(app: 0, .all, aspect: 0, variant: 2, isBased: false))),
                    .init(335_175, .reinstallApp(0, 1)),
                    .init(335_177, .reboot(6)),
                    .init(335_186, .request(1, .delete(app: 1, .all))),
                    .init(336_774, .stopAgent(0)),
                    .init(336_796, .crashController(effects: 2, downFor: 1_473)),
                    .init(338_968, .retire(7, 1)),
                    .init(338_991, .request(0, .apply(app: 2, .group(1), aspect: 3, variant: 4, isBased: false))),
                    .init(339_013, .freeze(7, 26_914, isDead: false)),
                    .init(341_474, .freeze(2, 27_758, isDead: true)),
                    .init(342_752, .crashAgent(4, effects: 3)),
                    .init(344_456, .remove(7)),
                    .init(344_769, .request(0, .apply(app: 0, .all, aspect: 0, variant: 3, isBased: false))),
                    .init(347_247, .request(0, .apply(app: 1, .all, aspect: 3, variant: 3, isBased: false))),
                    .init(349_839, .crashBroker(downFor: 1_570)),
                    .init(352_036, .request(0, .group(1, priority: 1, members: 195))),
                    .init(352_059, .intrude(0, 2)),
                    .init(352_800, .crashBroker(downFor: 1_186)),
                    .init(352_811, .request(0, .apply(app: 2, .group(1), aspect: 3, variant: 5, isBased: false))),
                    .init(352_825, .request(1, .apply(app: 1, .group(0), aspect: 0, variant: 2, isBased: false))),
                    .init(352_838, .request(0, .apply(app: 0, .group(0), aspect: 0, variant: 5, isBased: false))),
                    .init(352_861, .request(0, .apply(app: 2, .group(0), aspect: 4, variant: 2, isBased: false))),
                    .init(352_887, .retire(6, 1)),
                    .init(353_991, .request(0, .apply(app: 1, .group(1), aspect: 0, variant: 0, isBased: true))),
                    .init(353_999, .crashApp(5, 2)),
                    .init(356_175, .putBackController(withFolder: true)),
                ])),
        KeptSchedule(
            what: "wills of an earlier run, which began later by a clock that was set back, are no other controller",
            schedule: Schedule(
                seed: 470_185_715_212_860, devices: 1, apps: 3, broker: .hostile,
                steps: [
                    .init(1_278, .request(0, .group(0, priority: 2, members: 1))),
                    .init(5_420, .forge(0, .late)),
                    .init(5_838, .request(0, .apply(app: 1, .all, aspect: 3, variant: 2, isBased: false))),
                    .init(5_863, .cutController(noticedAfter: 14_146)),
                    .init(7_858, .saveBroker),
                    .init(7_882, .setClock(0, 2_000_000_000)),
                    .init(9_894, .answer(0, 0)),
                    .init(10_925, .forge(0, .replayedRequest)),
                    .init(10_929, .request(0, .apply(app: 0, .all, aspect: 1, variant: 2, isBased: false))),
                    .init(12_774, .cutDevice(0, noticedAfter: 6_699)),
                    .init(13_628, .request(0, .apply(app: 0, .all, aspect: 0, variant: 5, isBased: false))),
                    .init(14_267, .request(0, .apply(app: 2, .all, aspect: 1, variant: 2, isBased: false))),
                    .init(14_272, .setControllerClock(-30)),
                    .init(14_293, .request(1, .apply(app: 2, .group(0), aspect: 4, variant: 2, isBased: false))),
                    .init(14_314, .saveBroker),
                    .init(14_341, .request(1, .apply(app: 1, .group(1), aspect: 0, variant: 5, isBased: false))),
                    .init(14_353, .forge(0, .moved)),
                    .init(16_181, .cutController(noticedAfter: 0)),
                    .init(17_409, .request(1, .apply(app: 2, .group(1), aspect: 4, variant: 4, isBased: false))),
                    .init(17_810, .cutController(noticedAfter: 16_939)),
                    .init(18_408, .clone(0)),
                    .init(18_864, .crashController(effects: 5, downFor: 137)),
                    .init(24_405, .crashBroker(downFor: 1_932)),
                ])),
        KeptSchedule(
            what: "of a group that was left and joined again in one moment a device has what was said in between",
            schedule: Schedule(
                seed: 4_071_064_096_016_051, devices: 4, apps: 1,
                steps: [
                    .init(4_226, .stallBroker(66_301)),
                    .init(11_849, .request(1, .group(0, priority: 0, members: 15))),
                    .init(12_072, .request(0, .group(1, priority: 1, members: 15))),
                    .init(13_307, .request(0, .group(0, priority: 1, members: 4))),
                    .init(16_752, .request(0, .apply(app: 0, .group(0), aspect: 1, variant: 0, isBased: false))),
                    .init(31_573, .request(0, .group(0, priority: 0, members: 15))),
                ])),
        KeptSchedule(
            what: "an answer stands while reasons come and go, of which the app hears the last one alone",
            schedule: Schedule(
                seed: 3_442_606_486_724_457, devices: 2, apps: 3, broker: .honest,
                steps: [
                    .init(76_912, .backUpController),
                    .init(846_353, .request(1, .apply(app: 1, .all, aspect: 4, variant: 0, isBased: false))),
                    .init(855_022, .enroll(0, isNew: false)),
                    .init(1_256_341, .request(1, .apply(app: 2, .all, aspect: 0, variant: 3, isBased: false))),
                    .init(1_256_373, .putBackController(withFolder: true)),
                ])),
        KeptSchedule(
            what: "a lost marker is said again soon, however long its subscription was waited for",
            schedule: Schedule(
                seed: 1_286_304_598_139_732, devices: 1, apps: 2, broker: .lossy,
                steps: [
                    .init(7, .request(1, .delete(app: 0, .all))),
                    .init(206, .freezeController(15_972, isDead: false)),
                    .init(223, .request(1, .group(0, priority: 0, members: 1))),
                    .init(286_710, .request(0, .apply(app: 0, .group(1), aspect: 2, variant: 1, isBased: false))),
                    .init(401_796, .request(0, .group(1, priority: 1, members: 1))),
                    .init(401_826, .request(1, .apply(app: 0, .all, aspect: 2, variant: 2, isBased: false))),
                    .init(402_786, .request(0, .apply(app: 0, .device(0), aspect: 2, variant: 3, isBased: false))),
                    .init(402_799, .request(1, .group(1, priority: 1, members: 1))),
                    .init(404_509, .crashBroker(downFor: 294)),
                    .init(404_533, .request(0, .apply(app: 0, .all, aspect: 0, variant: 0, isBased: false))),
                    .init(404_551, .refuseSaid(nil, 80_731)),
                    .init(519_709, .putBackController(withFolder: false)),
                ])),
        KeptSchedule(
            what: "two restores of one folder begin two epochs, also within one second",
            schedule: Schedule(
                seed: 4_288_589_618_611_717, devices: 2, apps: 1, broker: .honest,
                steps: [
                    .init(15, .backUpController),
                    .init(847, .request(1, .group(1, priority: 0, members: 0))),
                    .init(869, .putBackController(withFolder: false)),
                    .init(888, .cutDevice(0, noticedAfter: 0)),
                    .init(1_151, .ageBroker(by: 4, downFor: 1_116)),
                    .init(1_153, .backUpController),
                    .init(2_482, .putBackController(withFolder: false)),
                    .init(3_211, .putBackController(withFolder: true)),
                    .init(4_109, .putBackController(withFolder: true)),
                    .init(4_254, .crashBroker(downFor: 95)),
                    .init(4_399, .retire(1, 0)),
                ])),
        KeptSchedule(
            what: "an enrolment that a broker shows once more puts no device back that was taken out",
            schedule: Schedule(
                seed: 1_516_959_446_265_197, devices: 1, apps: 1, broker: .hostile,
                steps: [
                    .init(973, .backUpController), .init(3_291, .putBackController(withFolder: false)),
                    .init(8_714, .forge(0, .oldHello)), .init(15_416, .enroll(0, isNew: true)),
                    .init(22_824, .putBackController(withFolder: false)), .init(30_891, .remove(0)),
                    .init(33_176, .forge(0, .replayedRequest)),
                ])),
        KeptSchedule(
            what: "keys on an earlier disk are told of also where no more than its device's will and status were seen",
            schedule: Schedule(
                seed: 3_094_793_358_673_795, devices: 2, apps: 1, broker: .hostile,
                steps: [
                    .init(108, .request(1, .apply(app: 0, .group(1), aspect: 1, variant: 1, isBased: true))),
                    .init(990, .unplug(0, 245_634)), .init(1_085, .forge(0, .replayed)),
                    .init(1_109, .enroll(1, isNew: true)), .init(3_178, .unplug(1, 110_344)),
                    .init(19_136, .crashApp(1, 0)), .init(20_499, .crashAgent(1, effects: 3)),
                ])),
        KeptSchedule(
            what:
                "a level whose code was typed before its app retired itself comes back only when it is certain that it still stands",
            schedule: Schedule(
                seed: 2_000_360, devices: 1, apps: 2, broker: .hostile,
                steps: [
                    .init(2_482, .request(1, .apply(app: 1, .all, aspect: 4, variant: 4, isBased: false))),
                    .init(10_033, .setClock(0, -86_400)), .init(19_136, .retire(0, 1)),
                    .init(19_148, .stopBroker(downFor: 2_410)),
                    .init(23_503, .request(0, .apply(app: 1, .device(0), aspect: 0, variant: 5, isBased: false))),
                ])),
        KeptSchedule(
            what: "an app that has retired itself is told that it is managed as soon as a document retires it",
            schedule: Schedule(
                seed: 720_047, devices: 1, apps: 3, broker: .honest,
                steps: [
                    .init(295_029, .retire(0, 2)),
                    .init(295_449, .request(1, .apply(app: 2, .group(0), aspect: 0, variant: 5, isBased: false))),
                ])),
        KeptSchedule(
            what:
                "what a hello behind a restore makes old is shown once more of all apps, also of those that are just being fetched",
            schedule: Schedule(
                seed: 31_000_176, devices: 1, apps: 2, broker: .lossy,
                steps: [
                    .init(30, .request(0, .apply(app: 1, .all, aspect: 0, variant: 2, isBased: false))),
                    .init(2_496, .unplug(0, 88_005)),
                    .init(4_191, .enroll(0, isNew: false)),
                    .init(4_192, .enroll(0, isNew: false)),
                    .init(4_225, .cutController(noticedAfter: 0)),
                    .init(171_651, .request(0, .apply(app: 0, .all, aspect: 0, variant: 2, isBased: true))),
                    .init(172_656, .request(1, .apply(app: 1, .device(0), aspect: 0, variant: 2, isBased: false))),
                    .init(173_132, .request(0, .group(0, priority: 2, members: 1))),
                    .init(173_802, .request(1, .apply(app: 0, .all, aspect: 2, variant: 1, isBased: false))),
                    .init(174_677, .refuseSaid(0, 3_533)),
                    .init(177_006, .cutController(noticedAfter: 0)),
                    .init(177_006, .crashController(effects: 5, downFor: 2_642)),
                    .init(177_983, .request(1, .group(0, priority: 1, members: 1))),
                    .init(180_244, .backUpController),
                    .init(182_292, .request(1, .deleteGroup(0))),
                    .init(182_397, .putBackController(withFolder: true)),
                    .init(183_059, .crashBroker(downFor: 974)),
                    .init(183_063, .unplug(0, 252_287)),
                    .init(183_928, .unplug(0, 379_531)),
                    .init(499_362, .crashAgent(0, effects: 8)),
                    .init(499_975, .crashBroker(downFor: 2_838)),
                    .init(501_221, .refuseSaid(nil, 60_807)),
                    .init(713_326, .cutDevice(0, noticedAfter: 0)),
                ])),
        KeptSchedule(
            what:
                "what a guard kept back while a device's membership was signed by a withdrawn key is fetched with the next",
            schedule: Schedule(
                seed: 6_900_165, devices: 8, apps: 1, broker: .honest,
                steps: [
                    .init(91, .request(0, .group(0, priority: 0, members: 255))),
                    .init(1_875, .request(0, .group(1, priority: 0, members: 255))),
                    .init(1_876, .request(0, .apply(app: 0, .group(1), aspect: 0, variant: 0, isBased: false))),
                    .init(3_238, .request(1, .apply(app: 0, .all, aspect: 2, variant: 3, isBased: false))),
                    .init(4_134, .request(1, .apply(app: 0, .group(1), aspect: 1, variant: 3, isBased: false))),
                    .init(4_138, .request(1, .apply(app: 0, .device(2), aspect: 3, variant: 3, isBased: false))),
                    .init(4_557, .request(1, .apply(app: 0, .all, aspect: 0, variant: 2, isBased: false))),
                    .init(267_470, .clone(0)),
                    .init(267_471, .request(0, .apply(app: 0, .group(0), aspect: 4, variant: 4, isBased: false))),
                    .init(269_939, .request(0, .group(1, priority: 0, members: 255))),
                    .init(269_940, .request(1, .group(0, priority: 1, members: 255))),
                    .init(271_726, .retire(1, 0)),
                    .init(271_730, .request(1, .group(0, priority: 0, members: 255))),
                    .init(272_006, .request(0, .apply(app: 0, .device(4), aspect: 4, variant: 4, isBased: false))),
                    .init(272_011, .request(0, .apply(app: 0, .group(0), aspect: 4, variant: 5, isBased: false))),
                    .init(272_011, .request(0, .group(0, priority: 0, members: 255))),
                    .init(272_635, .request(1, .group(1, priority: 0, members: 255))),
                    .init(274_917, .unplug(6, 18231)),
                    .init(275_622, .request(1, .apply(app: 0, .all, aspect: 0, variant: 3, isBased: false))),
                    .init(275_622, .request(1, .group(0, priority: 1, members: 146))),
                    .init(278_026, .request(1, .apply(app: 0, .group(0), aspect: 2, variant: 0, isBased: false))),
                    .init(278_029, .request(1, .delete(app: 0, .all))),
                    .init(278_742, .request(1, .apply(app: 0, .all, aspect: 4, variant: 4, isBased: false))),
                    .init(278_747, .request(1, .group(1, priority: 1, members: 255))),
                    .init(278_752, .renewTrust),
                    .init(280_815, .request(0, .group(0, priority: 0, members: 16))),
                    .init(283_051, .request(0, .delete(app: 0, .group(1)))),
                    .init(284_530, .request(0, .apply(app: 0, .group(1), aspect: 1, variant: 5, isBased: false))),
                    .init(284_533, .request(0, .group(0, priority: 1, members: 255))),
                    .init(285_534, .renewTrust),
                    .init(285_538, .request(0, .group(0, priority: 1, members: 255))),
                ])),
        KeptSchedule(
            what: "with the last document of an earlier epoch all that waits for it is in force",
            schedule: Schedule(
                seed: 7_107_000_002, devices: 4, apps: 1, broker: .lossy,
                steps: [
                    .init(17, .enroll(0, isNew: true)),
                    .init(742, .request(1, .apply(app: 0, .all, aspect: 3, variant: 1, isBased: false))),
                    .init(3_228, .enroll(2, isNew: false)),
                    .init(4_084, .cutController(noticedAfter: 13_905)),
                    .init(4_112, .cutDevice(2, noticedAfter: 39_208)),
                    .init(6_466, .freeze(1, 33_281, isDead: true)),
                    .init(6_490, .cutDevice(2, noticedAfter: 0)),
                    .init(6_716, .backUpController),
                    .init(6_741, .request(0, .apply(app: 0, .group(1), aspect: 3, variant: 4, isBased: true))),
                    .init(6_750, .crashBroker(downFor: 1_250)),
                    .init(6_750, .stall(1, 3_603, isAsleep: false)),
                    .init(6_771, .request(0, .apply(app: 0, .all, aspect: 4, variant: 2, isBased: false))),
                    .init(6_784, .request(0, .delete(app: 0, .all))),
                    .init(6_800, .request(0, .apply(app: 0, .group(1), aspect: 2, variant: 0, isBased: false))),
                    .init(6_833, .request(0, .apply(app: 0, .group(1), aspect: 0, variant: 1, isBased: false))),
                    .init(6_833, .cutDevice(1, noticedAfter: 1_104)),
                    .init(6_865, .enroll(2, isNew: false)),
                    .init(8_371, .request(0, .group(0, priority: 0, members: 8))),
                    .init(8_388, .answer(0, 0)),
                    .init(10_196, .enroll(2, isNew: true)),
                    .init(11_154, .request(0, .delete(app: 0, .device(2)))),
                    .init(11_154, .stall(0, 865, isAsleep: false)),
                    .init(11_188, .request(0, .apply(app: 0, .device(0), aspect: 0, variant: 1, isBased: false))),
                    .init(11_247, .request(0, .apply(app: 0, .device(0), aspect: 2, variant: 1, isBased: false))),
                    .init(11_247, .cutDevice(0, noticedAfter: 2_746)),
                    .init(12_746, .request(0, .apply(app: 0, .group(1), aspect: 1, variant: 0, isBased: false))),
                    .init(14_159, .crashApp(1, 0)),
                    .init(16_591, .putBackController(withFolder: true)),
                    .init(19_034, .request(1, .apply(app: 0, .all, aspect: 3, variant: 3, isBased: false))),
                    .init(21_276, .request(1, .apply(app: 0, .all, aspect: 0, variant: 3, isBased: false))),
                    .init(21_304, .enterCode(0, 0, isRight: false)),
                    .init(21_329, .freeze(3, 40_201, isDead: true)),
                    .init(21_340, .cutController(noticedAfter: 8_673)),
                    .init(21_343, .saveBroker),
                ])),
    ]
}
