#!/usr/bin/env python3
"""A whole Fleetbus device in Python, with two apps built in: written from schemas/asyncapi.yaml.

    device.py FOLDER          FOLDER is made by `fleetctl enroll device ID --out FOLDER`

Its apps do at once what they are told. What happens is one JSON line each on standard output, which says what in
`event`: connected, lost, contact (a hello), status (one was published), refused, stored (of events, by the controller).
Lines on standard input are attempts that its apps block: `blocked APP ACTION [TARGET]`. SIGTERM ends it in order.

`signed.py` verifies documents, `kept.py` keeps them, `effective.py` says which of them decides, `apps.py` what follows.
Not shown here: debug codes (a level that asks for one stays awaitingCode), passcodes, and limits out of contact.
"""

import json
import pathlib
import queue
import random
import signal
import ssl
import sys
import threading
import time
import uuid

import paho.mqtt.client as mqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

import effective
import signed
from apps import SDK, App, fresh, now
from kept import Kept

APPS = {"com.example.mail": ["config", "openIn"], "com.example.notes": []}
AGENT = "device-py/1.0"
RESEND_EVERY = 30


def tell(event, **members):
    print(json.dumps({"event": event, **members}, ensure_ascii=False), flush=True)


class Device:
    def __init__(self, folder):
        self.folder, self.kept = folder, Kept(folder)
        self.given, self.prefix, self.save = self.kept.given, self.kept.prefix, self.kept.save
        self.id = self.given["device"]
        kept = self.kept.apps
        self.apps = [App(name, has, kept.setdefault(name, fresh()), self.emit) for name, has in APPS.items()]
        self.todo = queue.SimpleQueue()  # (client, function, arguments): all work is done by the main thread
        self.sequence, self.ticked = 0, time.monotonic()
        self.client = None
        self.fetched = self.in_contact = self.stopping = False  # fetched: both barriers; in_contact: the hello

    # The connection: a new client each time, since an old one would send again what it had in flight

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: self.todo.put((None, self.stop, ())))
        threading.Thread(target=self.read_input, daemon=True).start()
        pause = 0.0
        while not self.stopping:
            try:
                self.connect()
                while self.client is not None:
                    self.work()
                pause = 0.0 if self.fetched else pause
            except OSError as error:
                tell("lost", reason=str(error))
            pause = min(30.0, max(0.1, pause * 2))
            retry_at = time.monotonic() + random.uniform(0, pause)
            while not self.stopping and time.monotonic() < retry_at:
                self.work(retry_at - time.monotonic())

    def connect(self):
        self.connection, self.since = str(uuid.uuid4()), now()
        self.fetched = self.in_contact = False
        self.counter, self.waiting, self.barriers, self.held = 0, {}, {}, {}
        self.subscribed, self.is_fetching, self.last_contact, self.resend_at = set(), False, "", time.monotonic()
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, self.id, protocol=mqtt.MQTTv5, reconnect_on_failure=False)
        client.username_pw_set(self.kept.credentials["user"], self.kept.credentials["password"])
        if tls := self.given["broker"].get("tls"):
            context = ssl.create_default_context(cafile=self.folder / tls["ca"])
            if tls.get("certificate"):
                context.load_cert_chain(self.folder / tls["certificate"], self.folder / tls["key"])
            client.tls_set_context(context)
        client.will_set(self.prefix + "presence/" + self.id, json.dumps(self.presence("offline")), qos=1, retain=True)
        put = self.todo.put
        client.on_connect = lambda c, _, __, reason, ___: put((c, self.connected, (reason,)))
        client.on_disconnect = lambda c, _, __, reason, ___: put((c, self.lost, (reason,)))
        client.on_subscribe = lambda c, _, mid, reasons, __: put((c, self.granted, (mid, reasons)))
        client.on_message = lambda c, _, message: put((c, self.arrived, (message.topic, message.payload)))
        broker = self.given["broker"]
        client.connect(broker["host"], broker["port"], keepalive=30, clean_start=True)
        self.client = client
        client.loop_start()

    def work(self, patience=1.0):
        try:
            client, function, arguments = self.todo.get(timeout=min(1.0, max(0.0, patience)))
            if client in (None, self.client):
                function(*arguments)
        except queue.Empty:
            pass
        except signed.Refused as error:
            tell("refused", topic="", reason=f"a presence or barrier: {error}")
        if time.monotonic() - self.ticked >= 1:
            self.tick()
        if self.todo.empty() and self.client is not None:
            self.publish_statuses()

    def lost(self, reason):
        tell("lost", reason=str(reason))
        self.client.loop_stop()
        self.client = None

    def stop(self):
        self.stopping = True
        if self.client is not None:
            self.publish("presence/" + self.id, self.presence("offline"), retain=True).wait_for_publish(5)
            self.client.disconnect()

    def publish(self, topic, body, retain=False):
        text = json.dumps(body, ensure_ascii=False).encode()
        return self.client.publish(self.prefix + topic, text, qos=1, retain=retain)

    def presence(self, state):
        body = {"v": 1, "state": state, **self.kept.order, "connection": self.connection, "since": self.since,
                "agent": AGENT}
        if state == "online":
            body["apps"] = [{"id": app.name, "sdk": SDK, "implements": app.implements} for app in self.apps]
        return body

    # Two stages of subscriptions, a barrier behind each

    def connected(self, reason):
        if reason.is_failure:
            return  # the disconnection comes next
        tell("connected", boot=self.kept.order["boot"])
        own = [f"{place}/{self.id}" for place in ("presence", "control/hello", "control/received", "control/barrier")]
        metas = [f"desired/group/{group}/_group/meta" for group in self.kept.state["groups"]]
        first = ["desired/all/_fleet/trust", f"desired/device/{self.id}/_device/membership", *metas]
        self.subscribe([*first, *own, "control/heartbeat"], self.fetch, self.announce)

    def announce(self):
        self.publish("presence/" + self.id, self.presence("online"), retain=True)

    def subscribe(self, topics, then, before=None):
        """Subscribes; after the SUBACK calls `before`, sends a barrier, and calls `then` when that is back."""
        fresh = [topic for topic in topics if topic not in self.subscribed]
        self.subscribed.update(fresh)
        if not fresh:
            return self.barrier(then)
        _, mid = self.client.subscribe([(self.prefix + topic, SubscribeOptions(qos=1)) for topic in fresh])
        self.waiting[mid] = (then, before)

    def granted(self, mid, reasons):
        if any(reason.is_failure for reason in reasons):
            tell("refused", topic="", reason=f"a subscription: {[str(reason) for reason in reasons]}")
            return self.client.disconnect()
        then, before = self.waiting.pop(mid)
        if before:
            before()
        self.barrier(then)

    def barrier(self, then):
        self.counter += 1
        self.barriers[self.counter] = then
        self.publish(f"control/barrier/{self.id}", {"v": 1, "connection": self.connection, "counter": self.counter})

    def passed(self, marker):
        if marker.get("connection") != self.connection or marker.get("counter") not in self.barriers:
            return
        then = self.barriers.pop(marker["counter"])
        held, self.held = self.held, {}
        for topic, wire in held.items():
            self.signed(topic, wire, is_last_try=True)
        then()

    def wanted_groups(self):
        return self.kept.value(f"device/{self.id}/_device/membership").get("groups", [])

    def fetch(self):
        """Stage two, and each change of the membership: new groups are read before the old ones stop counting."""
        self.is_fetching = True
        groups = self.wanted_groups()
        topics = [f"desired/group/{group}/_group/meta" for group in groups]
        for app in APPS:
            places = ["all", *(f"group/{group}" for group in groups), f"device/{self.id}"]
            topics += [f"desired/{place}/{app}/+" for place in places]
        self.subscribe(topics, lambda: self.fetched_groups(groups))

    def fetched_groups(self, groups):
        self.is_fetching = False
        if groups != self.wanted_groups():
            return self.fetch()
        left = self.kept.change_groups(groups)
        gone = [topic for topic in self.subscribed if (self.prefix + topic).startswith(left)]
        if gone:
            self.subscribed.difference_update(gone)
            self.client.unsubscribe([self.prefix + topic for topic in gone])
        if not self.fetched:
            self.fetched = True
            for app in self.apps:
                app.is_dirty = True
        self.settle()

    # What arrives

    def arrived(self, topic, data):
        match topic.removeprefix(self.prefix).split("/"):
            case ["control", "barrier", _]:
                self.passed(signed.read_json(data))
            case ["presence", name]:
                if name == self.id and data and not self.stopping and signed.read_json(data).get("state") == "offline":
                    self.announce()  # an old will
            case ["desired", *_] if not data:
                pass  # the broker has forgotten it, which says nothing
            case _:
                self.signed(topic, data)

    def signed(self, topic, wire, is_last_try=False):
        is_trust = topic.endswith("/_fleet/trust")
        try:
            trusted = self.kept.root if is_trust else signed.trusted_keys(self.kept.trust)
            payload = signed.verify(wire, topic, trusted, self.given["fleetUUID"])
            match topic.removeprefix(self.prefix).split("/"):
                case ["desired", *_] if is_trust:
                    self.kept.accept_trust(payload, wire)
                case ["desired", *_]:
                    self.kept.accept(topic, payload, wire)
                    if topic.endswith("/_device/membership") and self.fetched and not self.is_fetching:
                        self.fetch()
                    self.settle()
                case ["control", "hello", _]:
                    if payload["device"] == self.id and payload["connection"] == self.connection:
                        self.hello(payload)
                case ["control", "heartbeat"]:
                    if self.in_contact and payload["at"] > self.last_contact:
                        self.last_contact = payload["at"]
                case ["control", "received", _]:
                    self.stored(payload["through"])
        except signed.UnknownKey as error:
            if is_last_try or is_trust:
                return self.refuse(topic, error)
            self.held[topic] = wire
            if not self.barriers and not self.waiting:
                self.barrier(lambda: None)
        except (signed.Refused, KeyError, TypeError) as error:
            self.refuse(topic, error)

    def refuse(self, topic, error):
        reason = str(error) if isinstance(error, signed.Refused) else f"member {error} is missing or wrong"
        tell("refused", topic=topic, reason=reason)
        entry = {"topic": topic[:512], "reason": reason[:300], "at": now()}
        others = [old for old in self.kept.state["refusals"] if {**old, "at": ""} != {**entry, "at": ""}]
        self.kept.state["refusals"] = [*others, entry][-8:]  # of the device: every app's status shows them
        for app in self.apps:
            app.is_dirty = True
        self.save()

    def hello(self, payload):
        if payload["at"] <= self.last_contact:
            return  # a replay
        if self.in_contact:
            self.announce()  # the controller has come back, and does not know who is here
        self.in_contact, self.last_contact = True, payload["at"]
        tell("contact", revision=payload["revision"])
        if "received" in payload:
            self.stored(payload["received"])
        self.send_events(self.kept.events)
        self.settle()

    # What follows from it

    def settle(self):
        """Puts in force what the layers say; nothing is loosened before both barriers and the hello."""
        is_free = self.fetched and self.in_contact
        metas = {group: self.kept.value(f"group/{group}/_group/meta") for group in self.kept.state["groups"]}
        priorities = {group: meta.get("priority", 0) for group, meta in metas.items()}
        groups = effective.precedence(metas, priorities)

        def find(app, aspect):
            return effective.layers(self.kept.documents, self.prefix, self.id, groups, app, aspect)

        for app in self.apps:
            app.settle(["auth"], find, [], is_free)
        authorized = [app.name for app in self.apps if app.is_authorized]
        for app in self.apps:
            app.settle([policy for policy in effective.ASPECTS if policy != "auth"], find, authorized, is_free)
            if is_free:
                is_managed = any(find(app.name, aspect) for aspect in effective.ASPECTS.values() if aspect)
                app.kept["managed"] = "managed" if is_managed else "unmanaged"
                if not app.is_ready:
                    app.is_ready = True
                    self.emit(app, "event", {"event": "ready"})
        self.save()

    def publish_statuses(self):
        """Those of one moment together, and none before the second barrier."""
        for app in [app for app in self.apps if app.is_dirty and self.fetched]:
            app.is_dirty = False
            self.sequence += 1
            self.publish(f"reply/{self.id}/{app.name}/status", {
                "v": 1, "device": self.id, "app": app.name, **self.kept.order, "seq": self.sequence, "at": now(),
                "agent": AGENT, "events": self.kept.state["number"], **app.status(),
                "refusals": self.kept.state["refusals"],
            }, retain=True)
            tell("status", app=app.name)

    # Events and log-level changes: numbered, kept, sent again until the controller has them

    def emit(self, app, reply, members):
        self.kept.add_event(reply, {"v": 1, "device": self.id, "app": app.name, "at": now(), **members})
        app.is_dirty = True
        if self.client is not None and self.fetched:
            self.send_events(self.kept.events[-1:])

    def send_events(self, entries):
        self.resend_at = time.monotonic() + RESEND_EVERY
        for entry in entries:
            body = {**entry["body"], "oldest": self.kept.oldest(entry["body"])}
            self.publish(f"reply/{self.id}/{body['app']}/{entry['reply']}", body)

    def stored(self, through):
        self.kept.forget_events(through)
        tell("stored", **through, left=len(self.kept.events))

    def tick(self):
        elapsed, self.ticked = time.monotonic() - self.ticked, time.monotonic()
        for app in self.apps:
            app.run_clocks(elapsed)
        self.settle()
        if self.in_contact and time.monotonic() >= self.resend_at:
            self.send_events(self.kept.events)

    def read_input(self):
        for line in sys.stdin:
            match line.split():
                case ["blocked", app, action, *target]:
                    members = {"event": "blocked", "action": action, **({"target": target[0]} if target else {})}
                    for found in [found for found in self.apps if found.name == app]:
                        self.todo.put((None, self.emit, (found, "event", members)))


if __name__ == "__main__":
    Device(pathlib.Path(sys.argv[1])).run()
