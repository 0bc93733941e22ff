"""What device.py keeps on disk: documents with their high-water marks, trust, groups, apps, and events not yet stored.

The rules stand in schemas/asyncapi.yaml: "Verifying a signed document" (steps 7 and 8) and "Status, events, numbers".
"""

import hashlib
import json
import os

import signed

MOST_EVENTS = 1000


class Kept:
    def __init__(self, folder):
        self.given = json.loads((folder / "agent.json").read_text("utf-8"))
        self.credentials = json.loads((folder / self.given["credentials"]).read_text("utf-8"))
        self.prefix = f"fleet/v1/{self.given['fleet']}/"
        self.root = signed.keys(signed.decode(self.given["rootKey"]))
        self.file = folder / self.given["state"] / "device-py.json"
        self.text = self.file.read_text("utf-8") if self.file.exists() else ""
        fresh = {"boot": 0, "trust": self.given["trust"], "marks": {}, "wires": {}, "groups": [], "apps": {},
                 "events": [], "refusals": []}
        self.state = json.loads(self.text) if self.text else fresh
        self.state.update(boot=self.state["boot"] + 1, number=0)
        self.apps, self.events = self.state["apps"], self.state["events"]
        self.marks = self.state["marks"]  # by topic: the highest order ever accepted, and the digest of those bytes
        for topic, floor in self.given["floors"].items():
            if floor > self.marks.get(topic, {"order": [0, 0]})["order"]:
                self.marks[topic] = {"order": floor, "digest": None}
        wires = self.state["wires"]
        self.documents = {topic: json.loads(json.loads(wire)["payload"]) for topic, wire in wires.items()}
        self.trust = max((self.read_trust(self.given), self.read_trust(self.state)), key=lambda trust: trust["version"])
        self.save()

    def read_trust(self, place):
        topic = self.prefix + "desired/all/_fleet/trust"
        return signed.verify(place["trust"], topic, self.root, self.given["fleetUUID"])

    def save(self):
        """Survives a crash: a new file, on the disk before it replaces the old one."""
        text = json.dumps(self.state, ensure_ascii=False)
        if text == self.text:
            return
        new = self.file.with_suffix(".new")
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.file)
        self.text = text

    @property
    def order(self):
        return {"incarnation": self.given["incarnation"], "boot": self.state["boot"]}

    # Documents

    def accept_trust(self, payload, wire):
        signed.trusted_keys(payload)
        if payload["version"] <= self.trust["version"] and payload != self.trust:
            raise signed.Refused(f"version {payload['version']}, where {self.trust['version']} was here already")
        self.trust, self.state["trust"] = payload, wire.decode()
        self.save()

    def accept(self, topic, payload, wire):
        check(payload, topic)
        order = [payload["epoch"], payload["revision"]]
        digest = hashlib.sha256(wire).hexdigest()
        mark = self.marks.get(topic, {"order": [0, 0], "digest": None})
        if order < mark["order"] or order[0] < self.given["epoch"]:
            raise signed.Refused(f"epoch and revision {order}, where {mark['order']} was here already")
        if order == mark["order"] and mark["digest"] not in (None, digest):
            raise signed.Refused(f"epoch and revision {order} again, with other bytes")
        self.marks[topic] = {"order": order, "digest": digest}
        self.state["wires"][topic], self.documents[topic] = wire.decode(), payload
        self.save()

    def change_groups(self, groups):
        """What only the groups left have said is forgotten; the marks stay."""
        left = tuple(f"{self.prefix}desired/group/{group}/" for group in self.state["groups"] if group not in groups)
        for topic in [topic for topic in self.documents if topic.startswith(left)]:
            del self.documents[topic], self.state["wires"][topic]
        self.state["groups"] = groups
        self.save()
        return left

    def value(self, place):
        """What the accepted document at `desired/` + place says; nothing if it is a tombstone, or not there."""
        document = self.documents.get(f"{self.prefix}desired/{place}", {})
        return {} if document.get("deleted") else document.get("value", {})

    # Events and log-level changes

    def add_event(self, reply, body):
        self.state["number"] += 1
        self.events.append({"reply": reply, "body": {**body, **self.order, "number": self.state["number"]}})
        del self.events[:-MOST_EVENTS]
        self.save()

    def oldest(self, body):
        """The oldest number that is kept of the boot of an event."""
        return min(entry["body"]["number"] for entry in self.events if is_of_boot(entry, body))

    def forget_events(self, through):
        self.events[:] = [
            entry for entry in self.events
            if not is_of_boot(entry, through) or entry["body"]["number"] > through["number"]
        ]
        self.save()


def is_of_boot(entry, boot):
    return all(entry["body"][name] == boot[name] for name in ("incarnation", "boot"))


def check(payload, topic):
    """The members that are used later; desired.schema.json says it all."""
    numbers = [payload["epoch"], payload["revision"], payload["change"], payload.get("changeEpoch", 1)]
    if not all(type(number) is int and 0 < number < 2**53 for number in numbers):
        raise signed.Refused("a number that is none")
    if (payload.get("deleted") is True) == ("value" in payload):
        raise signed.Refused("neither a value nor a tombstone")
    value = payload.get("value", {"groups": [], "priority": 0})
    if topic.endswith("/_device/membership") and not all(isinstance(group, str) for group in value["groups"]):
        raise signed.Refused("a membership without groups")
    if topic.endswith("/_group/meta") and type(value["priority"]) is not int:
        raise signed.Refused("a meta without priority")
