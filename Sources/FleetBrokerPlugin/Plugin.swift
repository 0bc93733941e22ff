public import CMosquittoBroker

// The entry points that Mosquitto looks for. All of them, and all callbacks, run on its one thread.

/// The version of the interface that this speaks, if the broker does; -1 otherwise.
@c @implementation
public func mosquitto_plugin_version(_ count: CInt, _ supported: UnsafePointer<CInt>!) -> CInt {
    let version = CInt(MOSQ_PLUGIN_VERSION)
    return UnsafeBufferPointer(start: supported, count: Int(count)).contains(version) ? version : -1
}

/// Makes the guard. A broker that is told of a mistake here does not start.
@c @implementation
public func mosquitto_plugin_init(
    _ plugin: OpaquePointer!, _ userData: UnsafeMutablePointer<UnsafeMutableRawPointer?>!,
    _ options: UnsafeMutablePointer<mosquitto_opt>!, _ count: CInt
) -> CInt {
    do {
        let shell = try GuardShell(options: UnsafeBufferPointer(start: options, count: Int(count)))
        // Until the clean-up: the broker has it, and hands it to each callback.
        let context = Unmanaged.passRetained(shell).toOpaque()
        userData.pointee = context
        return GuardShell.register(with: plugin, context)
    } catch {
        BrokerLog.write("the configuration cannot be used: \(error)", CInt(MOSQ_LOG_ERR))
        return CInt(MOSQ_ERR_INVAL.rawValue)
    }
}

/// Lets go of the guard; Mosquitto calls nothing of it any more.
@c @implementation
public func mosquitto_plugin_cleanup(
    _ userData: UnsafeMutableRawPointer!, _ options: UnsafeMutablePointer<mosquitto_opt>!, _ count: CInt
) -> CInt {
    if let userData { Unmanaged<GuardShell>.fromOpaque(userData).release() }
    return CInt(MOSQ_ERR_SUCCESS.rawValue)
}
