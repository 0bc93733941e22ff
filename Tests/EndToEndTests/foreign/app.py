#!/usr/bin/env python3
"""An app of a Fleetbus device in Python: written from schemas/link/. With its standard library alone, but for what is encrypted.

    app.py --socket PATH --app ID --data FOLDER [--token TEXT] [--without print,config] [--answer error]

It registers at the agent's socket, keeps the properties that it is told, answers for every policy, and comes back with
`resume` when the agent is restarted. Each thing that happens is one JSON line on standard output, which says what in
`event`: sent and received (with the `frame`), ready, callback, again (a second ready), refused, lost, copied, pasted.

Lines on standard input: `blocked ACTION [TARGET]`, `display TEXT`, `copy TEXT`, `paste`, and `stop`. Not shown here: an app that retires
itself, and debug codes.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import select
import socket
import sys
import time
import uuid

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

LONGEST_LINE = 262_144
ACKNOWLEDGED = ("auth", "config", "openIn", "openFrom", "pasteboard", "print", "secureFileIO")
# The optional callbacks by the name in `implements`, each with the kind of delivery that it is for.
CALLBACKS = {
    "managedPolicy": "managed", "config": "config", "openIn": "openIn", "openFrom": "openFrom",
    "pasteboard": "pasteboard", "print": "print", "secureFileIO": "secureFileIO", "secureServices": "availability",
    "logLevel": "logLevel",
}
DEFAULTS = {
    "auth": {"state": "unauthorized", "message": "Your administrator has not authorized this app."},
    "openIn": {"policy": "unauthorized"}, "openFrom": {"policy": "unauthorized"},
    "pasteboard": {"policy": "unauthorized"}, "print": {"policy": "unauthorized"},
    "secureFileIO": {"policy": "required"}, "dragAndDrop": {"policy": "notAllowed"},
}
# What this app understands; anything else counts as the default.
KNOWN = {
    "auth": ("unauthorized", "authorized", "retired"),
    "openIn": ("unauthorized", "authorized", "whitelist"), "openFrom": ("unauthorized", "authorized", "whitelist"),
    "pasteboard": ("unauthorized", "authorized", "secureCopy"), "print": ("unauthorized", "authorized"),
    "secureFileIO": ("optional", "required"), "dragAndDrop": ("notAllowed", "appConnectApps", "allApps"),
}
LEVELS = ("error", "warning", "status", "info", "verbose", "debug")


def tell(event, **members):
    print(json.dumps({"event": event, **members}, ensure_ascii=False), flush=True)


def without_doubles(members):
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a double member")
    return found


def understood(what, value):
    """The value to take, and what was wrong with it; no value at all when what is in force stays."""
    if what == "config":
        return value["values"], None
    if what in ("managed", "availability"):
        return value, None
    if what == "logLevel":
        return (value["level"] if value["level"] in LEVELS else None), None
    if what not in KNOWN:
        return None, None
    name = value.get("state" if what == "auth" else "policy")
    if name in KNOWN[what]:
        return value, None
    return DEFAULTS[what], f"unknown value {name!r}"


def install_id(folder):
    """The id of this installation: made once, kept in the app's data."""
    file = pathlib.Path(folder) / "install"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(uuid.uuid4()))
    return file.read_text()


def text64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class App:
    def __init__(self, options):
        self.options = options
        self.implements = [name for name in CALLBACKS if name not in options.without.split(",")]
        self.register = {
            "type": "register", "v": 1, "app": options.app, "install": install_id(options.data),
            "launch": str(uuid.uuid4()), "sdk": "app-py/1.0", "implements": self.implements,
        }
        if options.token:
            self.register["token"] = options.token
        self.properties = {}
        self.is_ready = False
        self.newest = {}  # by kind: the newest delivery whose callback has returned
        self.answers = {}  # by policy: the newest acknowledgement
        self.link = None
        self.welcome = False
        self.incoming = b""
        self.asked = 0
        self.shared = None  # the secret of all authorized apps of the device
        self.has_pasteboard = False
        self.input_open = True
        self.stopping = False

    # The line

    def send(self, frame):
        if self.link is None:
            return
        tell("sent", frame=frame)
        try:
            self.link.sendall(json.dumps(frame, ensure_ascii=False).encode() + b"\n")
        except OSError:
            pass  # reading finds out, too, and then comes the next connection with `resume`

    def connect(self):
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self.options.socket)
        except OSError:
            link.close()
            return False
        self.link, self.welcome, self.incoming = link, False, b""
        frame = dict(self.register)
        if self.is_ready:
            frame["resume"] = {
                "delivered": [delivery for delivery, _ in self.newest.values()],
                "acknowledgements": list(self.answers.values()),
            }
        self.send(frame)
        return True

    def disconnect(self):
        self.link.close()
        self.link = None
        tell("lost")

    def run(self):
        """Connects again and again: at once, then after 50 ms, doubled up to 2 s, with some randomness."""
        pause = 0.0
        while not self.stopping:
            if self.connect():
                while self.link is not None and not self.stopping:
                    self.wait()
                pause = 0.0 if self.welcome else pause
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2.0, max(0.05, pause * 2))
        if self.link is not None:
            self.send({"type": "stop"})
            self.link.close()

    def wait(self):
        sources = [self.link.fileno()] + ([0] if self.input_open else [])
        for source in select.select(sources, [], [])[0]:
            if source == 0:
                self.read_input()
            elif self.link is not None:
                self.read_link()

    def read_link(self):
        try:
            data = self.link.recv(65_536)
        except OSError:
            data = b""
        *lines, self.incoming = (self.incoming + data).split(b"\n")
        try:
            if any(len(line) > LONGEST_LINE for line in [*lines, self.incoming]):
                raise ValueError("a line is too long")
            for line in lines:
                self.receive(json.loads(line.decode(), object_pairs_hook=without_doubles))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            print(f"the agent wrote what is no frame: {error!r}", file=sys.stderr)
            data = b""
        if not data:
            self.disconnect()

    # What the agent says

    def receive(self, frame):
        tell("received", frame=frame)
        match frame["type"]:
            case "welcome":
                self.welcome = True
                self.has_pasteboard = frame.get("pasteboard", False)
            case "refused":
                tell("refused", code=frame["code"], message=frame["message"])
            case "ready" if self.is_ready:
                tell("again")
                self.send({"type": "ready"})
            case "ready":
                self.ready(frame["properties"])
            case "keys":
                self.shared = bytes64(frame["shared"]) if "shared" in frame else None
            case "copied":
                tell("copied", ok=frame["ok"])
            case "pasted":
                tell("pasted", text=self.pasted(frame))
            case "deliver":
                self.deliver(frame["delivery"], frame["what"], frame["value"])

    def ready(self, told):
        values = {"managed": told["managed"], "availability": told["availability"], **told["policies"]}
        self.properties = {what: understood(what, value)[0] for what, value in values.items()}
        if self.properties["logLevel"] is None:
            self.properties["logLevel"] = "status"
        self.is_ready = True
        tell("ready", properties=self.properties)
        self.send({"type": "ready"})

    def deliver(self, delivery, what, told):
        """First the property, then the callback, then `delivered`; one after the other, as they come."""
        value, wrong = understood(what, told)
        if value is None:
            return self.send({"type": "delivered", "delivery": delivery})  # passed over; the next one waits for this
        if self.newest.get(what) == (delivery, value):
            return self.send({"type": "delivered", "delivery": delivery})  # a repetition
        self.properties[what] = value
        has_callback = what == "auth" or what in [CALLBACKS[name] for name in self.implements]
        if has_callback:
            tell("callback", what=what, value=value, delivery=delivery)
        self.newest[what] = (delivery, value)
        if what in ACKNOWLEDGED and not has_callback:
            return self.acknowledge(delivery, what, "unsupported", "This app does not implement this policy.")
        if wrong:
            self.acknowledge(delivery, what, "error", wrong)
        elif self.options.answer == "error":
            self.acknowledge(delivery, what, "error", "This app was told to fail.")
        else:
            self.acknowledge(delivery, what, "applied")
        self.send({"type": "delivered", "delivery": delivery})

    def acknowledge(self, delivery, policy, state, message=None):
        if policy not in ACKNOWLEDGED:
            return
        self.answers[policy] = {"delivery": delivery, "policy": policy, "state": state}
        if message:
            self.answers[policy]["message"] = message
        self.send({"type": "acknowledge", **self.answers[policy]})

    # Copying and pasting

    def cipher(self):
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"fleetbus shared pasteboard\0").derive(self.shared)
        return AESGCM(key)

    def may_use_keys(self):
        is_authorized = self.properties.get("auth", {}).get("state") == "authorized"
        return is_authorized and self.properties.get("availability") == "available" and self.shared is not None

    def copy(self, text):
        is_authorized = self.properties.get("auth", {}).get("state") == "authorized"
        policy = self.properties.get("pasteboard", {}).get("policy") if is_authorized else "unauthorized"
        content = b"text/plain\0" + text.encode()
        if policy == "unauthorized":
            return self.send({"type": "blocked", "action": "copy"})
        if policy == "secureCopy":
            if not self.may_use_keys():
                return tell("copied", ok=False)
            nonce = os.urandom(12)
            content = nonce + self.cipher().encrypt(nonce, content, None)
        self.ask({"type": "copy", "content": text64(content), "secured": policy == "secureCopy"})

    def pasted(self, frame):
        if "content" not in frame:
            return None
        content = bytes64(frame["content"])
        if frame["secured"]:
            if not self.may_use_keys():
                return None
            try:
                content = self.cipher().decrypt(content[:12], content[12:], None)
            except InvalidTag:
                return None
        return content.partition(b"\0")[2].decode()

    def ask(self, frame):
        self.asked += 1
        if self.has_pasteboard or frame["type"] == "display":
            self.send({**frame, "id": self.asked})

    # What the person at the app does

    def read_input(self):
        text = os.read(0, 65_536).decode()
        self.input_open = text != ""
        for line in text.splitlines():
            match line.split(" ", 2):
                case ["blocked", action]:
                    self.send({"type": "blocked", "action": action})
                case ["blocked", action, target]:
                    self.send({"type": "blocked", "action": action, "target": target})
                case ["display", *words]:
                    self.ask({"type": "display", "text": " ".join(words)})
                case ["copy", *words]:
                    self.copy(" ".join(words))
                case ["paste"]:
                    self.ask({"type": "paste"})
                case ["stop"]:
                    self.stopping = True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An app in Python.")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--app", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--token")
    parser.add_argument("--without", default="")
    parser.add_argument("--answer", default="applied", choices=("applied", "error"))
    App(parser.parse_args()).run()
