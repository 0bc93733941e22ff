internal import CMosquitto
internal import Glibc

/// What libmosquitto calls, under its lock: each copies out and leaves, nothing calls the library back.
extension Connection {
    private static func from(_ context: UnsafeMutableRawPointer?) -> Connection? {
        context.map { Unmanaged<Connection>.fromOpaque($0).takeUnretainedValue() }
    }

    func installCallbacks() {
        mosquitto_connect_v5_callback_set(raw) { _, context, reason, _, properties in
            Connection.from(context)?.accepted(reason: reason, properties)
        }
        mosquitto_disconnect_v5_callback_set(raw) { _, context, status, _ in
            guard let connection = Connection.from(context) else { return }
            if connection.farewell == nil { connection.farewell = status }
        }
        mosquitto_publish_v5_callback_set(raw) { _, context, id, reason, _ in
            guard let connection = Connection.from(context) else { return }
            connection.client.published(
                PacketID(rawValue: UInt16(truncatingIfNeeded: id)),
                ReasonCode(rawValue: UInt8(truncatingIfNeeded: reason)))
        }
        mosquitto_subscribe_v5_callback_set(raw) { _, context, id, count, granted, _ in
            guard let connection = Connection.from(context) else { return }
            let codes = UnsafeBufferPointer(start: granted, count: Int(count)).map {
                ReasonCode(rawValue: UInt8(truncatingIfNeeded: $0))
            }
            connection.client.subscribed(PacketID(rawValue: UInt16(truncatingIfNeeded: id)), codes)
        }
        mosquitto_unsubscribe_v5_callback_set(raw) { _, context, id, _ in
            Connection.from(context)?.client.unsubscribed(PacketID(rawValue: UInt16(truncatingIfNeeded: id)))
        }
        mosquitto_message_v5_callback_set(raw) { _, context, message, _ in
            guard let connection = Connection.from(context), let message = message?.pointee,
                let topic = message.topic
            else { return }
            // The library reads on while it has reason to; this is how it is told that there is nothing more for now.
            guard connection.takes(message, topicSize: strlen(topic)) else {
                errno = EAGAIN
                return
            }
            let exhausted = connection.client.received(
                Message(
                    topic: String(cString: topic),
                    payload: [UInt8](
                        UnsafeRawBufferPointer(start: message.payload, count: Int(max(0, message.payloadlen)))),
                    qos: QoS(rawValue: UInt8(truncatingIfNeeded: message.qos)) ?? .atMostOnce,
                    retained: message.retain, connection: connection.number))
            if exhausted { errno = EAGAIN }
        }
    }

    /// A broker that sends what it was told not to send is left, and nothing more of it is heard: the library tells brokers
    /// the largest packet, and reads whatever comes.
    private func takes(_ message: mosquitto_message, topicSize: Int) -> Bool {
        if failure == nil, topicSize + Int(max(0, message.payloadlen)) > client.options.maximumPacketSize {
            failure = (MOSQ_ERR_OVERSIZE_PACKET.rawValue, 0)
        }
        return failure == nil
    }

    /// Keeps the library's last complaint, which for TLS is the only place that says what was wrong.
    func installErrorLog() {
        keepsErrorLog = true
        mosquitto_log_callback_set(raw) { _, context, level, text in
            guard level == MOSQ_LOG_ERR, let text else { return }
            Connection.from(context)?.lastError = String(cString: text)
        }
    }

    /// The log costs a formatted line for every packet, so it ends when the connection stands.
    func removeErrorLog() {
        keepsErrorLog = false
        mosquitto_log_callback_set(raw, nil)
        lastError = nil
    }

    private func accepted(reason: Int32, _ properties: OpaquePointer?) {
        let code = ReasonCode(rawValue: UInt8(truncatingIfNeeded: reason))
        guard reason == 0 else {
            refusal = code
            return
        }
        guard case .connecting = client.phase else {
            if failure == nil { failure = (MOSQ_ERR_PROTOCOL.rawValue, 0) }
            return
        }
        var sendMaximum = UInt16.max
        var packetSize = UInt32.max
        mosquitto_property_read_int16(properties, Int32(MQTT_PROP_RECEIVE_MAXIMUM.rawValue), &sendMaximum, false)
        mosquitto_property_read_int32(properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), &packetSize, false)
        client.accepted(
            Connack(
                number: number, sendMaximum: Int(min(sendMaximum, client.options.sendMaximum)),
                maximumPacketSize: min(Int(packetSize), client.options.maximumPacketSize)))
    }
}
