"""The apps of device.py: what decides for each, what is in force, and the status that says so.

An app here does what it is told at once, so `applied` comes without a `delivered` before it.
"""

import datetime

import effective

SDK = "device-py/1.0"


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fresh():
    """What is kept of an app that was never told anything."""
    start = {"source": "default", "received": 0}
    pending = {"revision": 0, "outcome": "pending", "at": now()}
    policies = {name: {**start, "value": value, "attempt": pending} for name, value in effective.DEFAULTS.items()}
    return {"latch": None, "keys": "present", "managed": "unknown", "clocks": {}, "policies": policies}


class App:
    def __init__(self, name, implements, kept, emit):
        self.name = name
        self.implements = implements
        self.kept = kept  # what the device keeps for it on disk
        self.emit = emit  # emit(app, reply, members): an event or log-level change
        self.is_ready = False
        self.is_dirty = False  # the broker has not been given its present status

    def value(self, policy):
        return self.kept["policies"][policy]["value"]

    @property
    def is_authorized(self):
        return self.value("auth")["state"] == "authorized"

    @property
    def has_services(self):
        services = self.value("secureServices")
        is_open = not services.get("locked") and not services.get("passcode", {}).get("required")
        return self.is_authorized and self.is_ready and is_open

    # What is wanted

    def settle(self, policies, find, authorized_apps, is_free):
        """Puts in force what the layers say. Unless `is_free`, only what is stricter."""
        for policy in policies:
            aspect = effective.ASPECTS[policy]
            found = find(self.name, aspect) if aspect else []
            topic, document = found[0] if found else ("default", None)
            value, outcome, message = effective.DEFAULTS[policy], "applied", ""
            try:
                if policy == "logLevel":
                    value, outcome = self.log_level(found)
                elif document:
                    value = effective.read(policy, document["value"], authorized_apps)
                if policy == "secureServices" and value.get("passcode", {}).get("required"):
                    outcome, message = "unsupported", "This device has nowhere to enter a passcode."
            except ValueError as error:
                outcome, message = "rejected", str(error)
                if aspect not in ("auth", "dlp"):
                    value = self.value(policy)  # stays
            if policy == "auth" and self.is_latched(value, document, outcome):
                value, outcome, message = self.value("auth"), "applied", ""
                if document:
                    outcome, message = "rejected", "retired: only a later auth document ends that"
            self.take(policy, topic, document["revision"] if document else 0, value, (outcome, message), is_free)
            if policy == "auth":
                self.retire_or_renew(document)

    def log_level(self, found):
        """The level in force, and the outcome of the deciding document."""
        live = [document["value"] for topic, document in found if not self.is_over(topic, document)]
        level = effective.read("logLevel", live[0], []) if live else effective.DEFAULTS["logLevel"]
        if live and "code" in live[0] and level in ("verbose", "debug"):
            return self.value("logLevel"), "awaitingCode"
        return level, "expired" if found and self.is_over(*found[0]) else "applied"

    def is_over(self, topic, document):
        """Whether the time of a log level is up: counted from the first receipt of its change while the device runs."""
        value = document["value"] if isinstance(document["value"], dict) else {}
        if "for" in value:
            change = effective.change(document)
            clock = self.kept["clocks"].get(topic)
            if clock is None or clock["change"] != change:
                clock = self.kept["clocks"][topic] = {"change": change, "left": value["for"]}
            if clock["left"] <= 0:
                return True
        return "notAfter" in value and datetime.datetime.fromisoformat(value["notAfter"]).timestamp() <= (
            datetime.datetime.now().timestamp())

    def run_clocks(self, elapsed):
        for clock in self.kept["clocks"].values():
            clock["left"] = max(0, clock["left"] - elapsed)

    def is_latched(self, value, document, outcome):
        """A retirement ends only by a document that an operator has changed later, and that is understood."""
        latch = self.kept["latch"]
        is_later = outcome == "applied" and effective.change(document) > (latch or [0, 0])
        return latch is not None and value["state"] != "retired" and not is_later

    def retire_or_renew(self, document):
        retired = self.value("auth")["state"] == "retired"
        if retired:
            if effective.is_retirement(document):
                self.kept["latch"] = max(self.kept["latch"] or [0, 0], effective.change(document))
            if self.kept["keys"] == "present":
                self.kept["keys"] = "destroyed"
                self.emit(self, "event", {"event": "wiped"})
        elif self.kept["latch"]:
            self.kept["latch"], self.kept["keys"] = None, "present"

    def take(self, policy, source, revision, value, ending, is_free):
        """One policy: what was received, what is in force, how the attempt ended; never blurred."""
        record, (outcome, message) = self.kept["policies"][policy], ending
        before = dict(record)
        attempt = record["attempt"]
        record.update(source=source, received=revision)
        was_told = attempt["outcome"] != "pending" or "applied" in record
        if value == record["value"] and outcome == attempt["outcome"] and message == attempt.get("message", ""):
            record["attempt"] = {**attempt, "revision": revision}  # the same effective value: carried over
        elif is_free or was_told and effective.is_stricter(policy, value, record["value"]):
            record["attempt"] = {"revision": revision, "outcome": outcome, "at": now()}
            if message:
                record["attempt"]["message"] = message
            if policy == "logLevel" and value != record["value"]:
                why = "expired" if outcome == "expired" else "policy"
                self.emit(self, "log-level", {"old": record["value"], "new": value, "why": why})
            record["value"] = value
        elif attempt["outcome"] != "pending" or attempt["revision"] != revision:
            record["attempt"] = {"revision": revision, "outcome": "pending", "at": now()}
        if record["attempt"]["outcome"] in ("applied", "expired"):
            record["applied"] = revision
        self.is_dirty = self.is_dirty or record != before

    # What is reported

    def status(self):
        records = self.kept["policies"]
        auth, record = self.value("auth"), records["auth"]
        reason = "policy" if record["source"] != "default" or auth["state"] == "retired" else "none"
        if record["attempt"]["outcome"] == "rejected" and auth["state"] != "retired":
            reason = "unknownValue"
        return {
            "sdk": SDK, "running": True, "ready": self.is_ready, "managed": self.kept["managed"],
            "auth": {**auth, "reason": reason}, "keys": self.kept["keys"],
            "secureServices": "available" if self.has_services else "unavailable",
            "logLevel": self.value("logLevel"),
            "policies": {
                policy: {name: member for name, member in record.items() if name != "value"}
                for policy, record in records.items()
            },
        }
