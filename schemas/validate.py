#!/usr/bin/env python3
"""Checks JSON files against the schemas of this folder, and asyncapi.yaml against itself.

    validate.py FOLDER             every FOLDER/<schema-name>/*.json must be valid
    validate.py --refused FOLDER   every one must be refused
    validate.py --asyncapi         asyncapi.yaml: all references resolve, all channels have what they need;
                                   prints one line for each channel: its address

A file that ends in .jsonl holds one document a line. <schema-name> is the schema's path in this folder without
.schema.json, such as status. Says what is wrong, a line each, and exits 1; 0 when nothing is; 2 for wrong use.
"""

import json
import pathlib
import re
import sys

import yaml
from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource

SCHEMAS = pathlib.Path(__file__).resolve().parent
ENDING = ".schema.json"


def pattern(_, expression, instance, __):
    """As ECMA-262 has it, where $ stands for the very end: Python's would pass over a line feed there."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$(?=$|\))", r"\\Z", expression), instance):
        yield ValidationError(f"{instance!r} does not match {expression!r}")


Validator = validators.extend(Draft202012Validator, {"pattern": pattern})


class Schemas:
    def __init__(self):
        self.by_name = {}
        for path in sorted(SCHEMAS.rglob("*" + ENDING)):
            name = path.relative_to(SCHEMAS).as_posix()[: -len(ENDING)]
            self.by_name[name] = json.loads(path.read_text(encoding="utf-8"))
        resources = [(schema["$id"], Resource.from_contents(schema)) for schema in self.by_name.values()]
        self.registry = Registry().with_resources(resources)
        self.validators = {}

    def validator(self, name):
        if name not in self.validators:
            schema = self.by_name[name]
            Validator.check_schema(schema)
            self.validators[name] = Validator(schema, registry=self.registry, format_checker=FormatChecker())
        return self.validators[name]


def documents(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        yield str(path), text
    else:
        for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
            yield f"{path}:{number}", line


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members


def constant(word):
    raise ValueError(f"{word} is no JSON")


def mistake(schemas, name, text):
    """What is wrong with a document, or None."""
    try:
        instance = json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except ValueError as error:
        return f"no JSON: {error}"
    error = next(iter(sorted(schemas.validator(name).iter_errors(instance), key=lambda e: e.json_path)), None)
    return error and f"{error.json_path}: {error.message}"


def validate(folder, refused):
    schemas = Schemas()
    count = 0
    wrong = []
    for name in schemas.by_name:
        schemas.validator(name)
    for path in sorted(list(folder.rglob("*.json")) + list(folder.rglob("*.jsonl"))):
        name = path.parent.relative_to(folder).as_posix()
        if name not in schemas.by_name:
            wrong.append(f"{path}: there is no schema {name}{ENDING}")
            continue
        for place, text in documents(path):
            count += 1
            found = mistake(schemas, name, text)
            if refused and not found:
                wrong.append(f"{place}: is valid, and should be refused")
            elif found and not refused:
                wrong.append(f"{place}: {found}")
    if count == 0:
        wrong.append(f"{folder}: there is nothing to check")
    return count, wrong


def pointed_at(document, pointer):
    for part in pointer.strip("/").split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def references(value, place="#"):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield place, value["$ref"]
        for name, member in value.items():
            yield from references(member, f"{place}/{name}")
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from references(element, f"{place}/{index}")


def asyncapi():
    document = yaml.safe_load((SCHEMAS / "asyncapi.yaml").read_text(encoding="utf-8"))
    wrong = []
    if document.get("asyncapi") != "3.0.0":
        wrong.append("asyncapi: is not 3.0.0")
    for place, reference in references(document):
        file, _, pointer = reference.partition("#")
        try:
            target = document
            if file:
                text = (SCHEMAS / file).read_text(encoding="utf-8")
                target = json.loads(text) if file.endswith(".json") else yaml.safe_load(text)
            if pointer:
                pointed_at(target, pointer)
        except (OSError, KeyError, IndexError, ValueError, TypeError):
            wrong.append(f"{place}: {reference} leads nowhere")
    channels = document.get("channels", {})
    used = set()
    for name, operation in document.get("operations", {}).items():
        if operation.get("action") not in ("send", "receive"):
            wrong.append(f"#/operations/{name}: action is neither send nor receive")
        if "qos" not in operation.get("bindings", {}).get("mqtt", {}):
            wrong.append(f"#/operations/{name}: has no mqtt binding")
        channel = operation["channel"]["$ref"].rsplit("/", 1)[-1]
        used.add((operation["action"], channel))
        for message in operation.get("messages", []):
            if not message["$ref"].startswith(f"#/channels/{channel}/messages/"):
                wrong.append(f"#/operations/{name}: {message['$ref']} is no message of its channel")
    for name, channel in channels.items():
        named = set(re.findall(r"\{([^}]+)\}", channel["address"]))
        given = set(channel.get("parameters", {}))
        if named != given:
            wrong.append(f"#/channels/{name}: parameters {sorted(given)}, in the address {sorted(named)}")
        if not channel.get("messages"):
            wrong.append(f"#/channels/{name}: has no messages")
        for action in ("send", "receive"):
            if (action, name) not in used:
                wrong.append(f"#/channels/{name}: nobody has the action {action}")
        print(channel["address"])
    return len(channels), wrong


def main(arguments):
    refused = "--refused" in arguments
    rest = [argument for argument in arguments if argument != "--refused"]
    if rest == ["--asyncapi"] and not refused:
        _, wrong = asyncapi()
    elif len(rest) == 1 and pathlib.Path(rest[0]).is_dir():
        count, wrong = validate(pathlib.Path(rest[0]), refused)
        print(f"{count} documents, {len(wrong)} mistakes")
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
