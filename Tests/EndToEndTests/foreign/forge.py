#!/usr/bin/env python3
"""An attack: reads a signed document, raises its revision, and signs it with another key under the old key's id."""

import base64
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

envelope = json.loads(sys.stdin.read())
payload = json.loads(envelope["payload"])
payload["revision"] += 1000
envelope["payload"] = json.dumps(payload)
signature = Ed25519PrivateKey.generate().sign((envelope["protected"] + "." + envelope["payload"]).encode())
envelope["signature"] = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
print(json.dumps(envelope))
