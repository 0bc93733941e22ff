"""Which document decides, and what it says: "Layers, effective values and defaults" of schemas/asyncapi.yaml.

Pure functions. A document is the payload of a verified signed document; a value that cannot be understood raises
ValueError with a text for the operator.
"""

ASPECTS = {
    "auth": "auth", "config": "config", "openIn": "dlp", "openFrom": "dlp", "pasteboard": "dlp", "print": "dlp",
    "secureFileIO": None, "dragAndDrop": "dlp", "secureServices": "secure-services", "logLevel": "log-level",
}
MESSAGE = "Your administrator has not authorized this app."
DEFAULTS = {
    "auth": {"state": "unauthorized", "message": MESSAGE}, "config": {},
    "openIn": {"policy": "unauthorized", "apps": []}, "openFrom": {"policy": "unauthorized", "apps": []},
    "pasteboard": "unauthorized", "print": "unauthorized", "secureFileIO": "required", "dragAndDrop": "notAllowed",
    "secureServices": {}, "logLevel": "status",
}
# From the strictest to the loosest.
RANKS = {
    "auth": ("retired", "unauthorized", "authorized"),
    "openIn": ("unauthorized", "whitelist", "authorized"), "openFrom": ("unauthorized", "whitelist", "authorized"),
    "pasteboard": ("unauthorized", "secureCopy", "authorized"), "print": ("unauthorized", "authorized"),
    "dragAndDrop": ("notAllowed", "appConnectApps", "allApps"),
    "logLevel": ("error", "warning", "status", "info", "verbose", "debug"),
}


def layers(documents, prefix, device, groups, app, aspect):
    """The live documents for one aspect of an app, the deciding one first; `groups` in their order of precedence."""
    places = [f"device/{device}", *(f"group/{group}" for group in groups), "all"]
    topics = [f"{prefix}desired/{place}/{app}/{aspect}" for place in places]
    found = [(topic, documents[topic]) for topic in topics if topic in documents]
    found = [(topic, document) for topic, document in found if not document.get("deleted")]
    if aspect == "auth":  # retired wins from any layer
        retired = [pair for pair in found if is_retirement(pair[1])]
        return retired + [pair for pair in found if pair not in retired]
    return found


def precedence(groups, metas):
    """Groups by priority (higher first), then by id."""
    return sorted(groups, key=lambda group: (-metas.get(group, 0), group.encode()))


def is_retirement(document):
    value = document.get("value") if document else None
    return isinstance(value, dict) and value.get("state") == "retired"


def change(document):
    """When an operator last changed it: what latches and time limits compare."""
    return [document.get("changeEpoch", document["epoch"]), document["change"]] if document else [0, 0]


def one_of(name, names):
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"unknown value {name!r}: expected {', '.join(names)}")
    return name


def members(value, **types):
    """Checks that a value is an object whose known members have their types."""
    if not isinstance(value, dict):
        raise ValueError("not an object")
    for name, kind in types.items():
        if name in value and (not isinstance(value[name], kind) or kind is int and isinstance(value[name], bool)):
            raise ValueError(f"{name} is no {kind.__name__}")
    return value


def read(policy, value, authorized_apps):
    """The effective value of one policy, out of its aspect's value."""
    if policy == "auth":
        members(value, message=str)
        found = one_of(value.get("state"), RANKS["auth"])
        return {"state": found, "message": value.get("message") or ("" if found == "authorized" else MESSAGE)}
    if policy == "config":
        values = members(value, values=dict).get("values")
        if values is None or not all(isinstance(text, str) for text in values.values()):
            raise ValueError("values is not an object of texts")
        return values
    if policy in ("openIn", "openFrom"):
        if policy not in members(value):
            return DEFAULTS[policy]
        wish = members(value[policy], apps=list)
        name = one_of(wish.get("policy"), (*RANKS[policy], "appConnectApps"))
        if name == "appConnectApps":
            return {"policy": "whitelist", "apps": sorted(authorized_apps)}
        if name == "whitelist" and not all(isinstance(app, str) for app in wish.get("apps", [None])):
            raise ValueError("a whitelist without apps")
        return {"policy": name, "apps": sorted(set(wish["apps"])) if name == "whitelist" else []}
    if policy in ("pasteboard", "print", "dragAndDrop"):
        return one_of(members(value).get(policy, DEFAULTS[policy]), RANKS[policy])
    if policy == "secureServices":
        members(value, locked=bool, passcode=dict, autoLock=int, offline=dict)
        members(value.get("offline", {}), blockAfter=int, wipeAfter=int)
        if "passcode" in value and "required" not in members(value["passcode"], required=bool, minLength=int):
            raise ValueError("passcode without required")
        return value
    members(value, **{"for": int, "notAfter": str, "code": dict})
    return one_of(value.get("level"), RANKS["logLevel"])


def is_stricter(policy, new, old):
    """Whether `new` allows nothing that `old` does not."""
    if policy in ("openIn", "openFrom"):
        if new["policy"] == old["policy"] == "whitelist":
            return set(new["apps"]) <= set(old["apps"])
        new, old = new["policy"], old["policy"]
    if policy == "auth":
        new, old = new["state"], old["state"]
    return policy in RANKS and RANKS[policy].index(new) <= RANKS[policy].index(old)
