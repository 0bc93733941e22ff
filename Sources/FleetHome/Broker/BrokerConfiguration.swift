import BrokerGuard
import FleetProtocol

/// The `mosquitto.conf` of a fleet.
struct BrokerConfiguration: Hashable, Sendable {
    let text: String

    /// - Parameter root: The key that the guard believes about keys.
    init(context: HomeContext, root: VerifyingKey, folder: String, data: String) {
        var lines = [
            "# The broker of fleet \(context.fleet). Made by fleetctl init.",
            "",
            "listener \(context.port) \(context.listen)",
        ]
        if let tls = context.tls, let certificate = tls.certificate, let key = tls.key {
            lines += ["cafile \(tls.authority)", "certfile \(certificate)", "keyfile \(key)"]
        }
        if let user = context.brokerUser {
            lines += [
                "", "# Whom Mosquitto becomes when root starts it, before it reads the files below.", "user \(user)",
            ]
        }
        lines += [
            "",
            "# Nobody without a password, nobody without rights.",
            "allow_anonymous false",
            "password_file \(folder)/passwd",
            "acl_file \(folder)/acl",
        ]
        if let library = context.guardLibrary {
            lines += [
                "# The guard is asked first, and always answers. A broker that runs without it, and is told by a SIGHUP to read",
                "# this file, keeps the ACL file.", "plugin \(library)",
            ]
            lines += GuardConfiguration(fleet: context.fleet, uuid: context.uuid, root: root).options
                .map { "plugin_opt_\($0.name) \($0.value)" }
        }
        lines += [
            "allow_zero_length_clientid false",
            "# Nobody of ours has a session that outlives its connection; what others leave behind is not kept for long.",
            "persistent_client_expiration 1h",
            "# What was published when it was allowed is shown, without asking anew for each reader.",
            "check_retain_source false",
            "",
            "# Desired state and reports are retained messages. What a killed broker loses (everything since the last save),",
            "# the controller and the devices bring back when they connect again.",
            "persistence true",
            "persistence_location \(data)/",
            "autosave_interval 60",
            "",
            "# As good as no limit. With one the broker silently drops what goes beyond: a reader of 3,000 retained topics",
            "# got 1,020 of them with the default of 1,000. Not 0, the documented word for no limit: 2.0.11 compares it with",
            "# its answers too, and so disconnects whoever publishes what it may not, instead of only refusing it.",
            "max_queued_messages 100000000",
            "max_inflight_messages 200",
            "",
            "# The largest message is an operator's request of 1 MiB.",
            "max_packet_size \(Request.maximumSize + 64 * 1_024)",
            "",
            "# Without it an acknowledgement takes 45 ms.",
            "set_tcp_nodelay true",
            "",
            "sys_interval 10",
            "pid_file \(data)/mosquitto.pid",
            "log_dest stderr",
            "log_type error",
            "log_type warning",
            "log_type notice",
        ]
        text = lines.joined(separator: "\n") + "\n"
    }
}
