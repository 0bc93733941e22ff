"""Publishes a status with properties of MQTT 5 beside the body, as a device of a fleet, and prints what a reader gets of them.

    properties.py PORT DEVICE-CREDENTIALS READER-CREDENTIALS TOPIC BODY
"""

import json
import pathlib
import queue
import sys

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties


def client(port, file):
    known = json.loads(pathlib.Path(file).read_text())
    made = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=known["user"], protocol=mqtt.MQTTv5)
    made.username_pw_set(known["user"], known["password"])
    happened = queue.Queue()
    made.on_connect = lambda *_: happened.put("connected")
    made.on_subscribe = lambda *_: happened.put("subscribed")
    made.on_message = lambda _client, _data, message: happened.put(message)
    made.connect("127.0.0.1", port)
    made.loop_start()
    assert happened.get(timeout=10) == "connected"
    return made, happened


def main(port, device, reader, topic, body):
    reading, heard = client(int(port), reader)
    reading.subscribe(topic, qos=1)
    assert heard.get(timeout=10) == "subscribed"
    speaking, _ = client(int(port), device)
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("padding", "x" * 60_000)] * 15
    properties.CorrelationData = b"y" * 60_000
    properties.ContentType = "text/x"
    speaking.publish(topic, body, qos=1, retain=True, properties=properties).wait_for_publish(10)
    message = heard.get(timeout=10)
    print(json.dumps({"body": message.payload.decode(), "properties": message.properties.json()}))
    for each in (reading, speaking):
        each.disconnect()
        each.loop_stop()


main(*sys.argv[1:])
