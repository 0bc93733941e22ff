#!/usr/bin/env python3
"""Signed documents of Fleetbus in Python: "Verifying a signed document" of schemas/asyncapi.yaml.

    signed.py FOLDER      checks this module against the vectors in FOLDER (schemas/vectors)
"""

import base64
import hashlib
import json
import pathlib
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LONGEST = 65_536
DEEPEST = 16


class Refused(Exception):
    """The document does not count; the text says why."""


class UnknownKey(Refused):
    """It may count with a newer trust document."""


def read_json(text, longest=LONGEST):
    """A JSON object, read strictly."""

    def members(pairs):
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a double member")
        return dict(pairs)

    def constant(name):
        raise ValueError(f"{name} is no JSON")

    def depth(value):
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        if len(text.encode("utf-8")) > longest:
            raise ValueError("too long")
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses lone surrogates
        if depth(value) > DEEPEST:
            raise ValueError("too deep")
    except (ValueError, RecursionError) as error:
        raise Refused(f"not readable: {error}") from None
    if not isinstance(value, dict):
        raise Refused("not a JSON object")
    return value


def decode(text):
    """The bytes of base64url without padding, and without superfluous bits."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise Refused("not base64url") from None
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != text:
        raise Refused("not base64url")
    return data


def key_id(public):
    return hashlib.sha256(public).digest()[:8].hex()


def keys(*publics):
    """Public keys (32 bytes each) by their ids."""
    return {key_id(public): Ed25519PublicKey.from_public_bytes(public) for public in publics}


def trusted_keys(trust):
    """The keys of a verified trust document's payload."""
    try:
        entries = [(entry["kid"], entry["alg"], decode(entry["x"])) for entry in trust["keys"]]
        if any(len(x) != 32 or key_id(x) != kid or alg != "EdDSA" for kid, alg, x in entries):
            raise Refused("a key of the trust document is not what its id says")
    except (KeyError, TypeError):
        raise Refused("not a trust document") from None
    return keys(*(x for _, _, x in entries))


def kind(topic):
    """The `typ` that a document at this topic must have."""
    match topic.split("/")[3:]:
        case ["desired", "all", "_fleet", "trust"]:
            return "fleetbus-trust+jws"
        case ["desired", *_]:
            return "fleetbus-desired+jws"
        case ["control", ("heartbeat" | "hello" | "received") as name, *_]:
            return f"fleetbus-{name}+jws"
    raise Refused("nothing signed belongs there")


def verify(wire, topic, trusted, fleet):
    """The payload of a signed document that has come at `topic`, checked against keys by id and the fleet's UUID."""
    envelope = read_json(wire)
    if set(envelope) != {"protected", "payload", "signature"} or not all(isinstance(t, str) for t in envelope.values()):
        raise Refused("not exactly protected, payload and signature")
    header = read_json(decode(envelope["protected"]))
    if set(header) != {"alg", "b64", "crit", "kid", "typ"}:
        raise Refused("the header has not exactly its five members")
    if (header["alg"], header["b64"], header["crit"]) != ("EdDSA", False, ["b64"]) or header["b64"] is not False:
        raise Refused("the header asks for another signature")
    if header["typ"] != kind(topic):
        raise Refused(f"of the kind {header['typ']!r}")
    key = trusted.get(header["kid"]) if isinstance(header["kid"], str) else None
    if key is None:
        raise UnknownKey(f"signed by the unknown key {header['kid']!r}")
    payload = envelope["payload"].encode("utf-8")
    try:
        key.verify(decode(envelope["signature"]), envelope["protected"].encode("ascii") + b"." + payload)
    except InvalidSignature:
        raise Refused("the signature is wrong") from None
    document = read_json(payload)
    if document.get("v") != 1 or isinstance(document["v"], bool):
        raise Refused(f"of the version {document.get('v')!r}")
    if document.get("fleet") != fleet:
        raise Refused("of another fleet")
    if document.get("topic") != topic:
        raise Refused(f"belongs to {document.get('topic')!r}")
    return document


def check(folder):
    step = json.loads((folder / "jws.json").read_text("utf-8"))
    trusted = keys(bytes.fromhex(step["publicKey"]))
    fleet = json.loads(step["payload"])["fleet"]
    assert list(trusted) == [step["kid"]], "the key's id"
    assert verify(step["wire"], step["topic"], trusted, fleet) == json.loads(step["payload"])
    for vector in json.loads((folder / "accepted.json").read_text("utf-8")):
        verify(vector["wire"], vector["topic"], trusted, fleet)
    for vector in json.loads((folder / "refused.json").read_text("utf-8")):
        try:
            verify(vector["wire"], vector["topic"], trusted, fleet)
        except Refused as error:
            print(f"{vector['name']}: {error}")
        else:
            raise AssertionError(f"{vector['name']} was not refused")


if __name__ == "__main__":
    check(pathlib.Path(sys.argv[1]))
