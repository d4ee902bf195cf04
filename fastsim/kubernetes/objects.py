"""Kubernetes objects from YAML and JSON: files with one document or several, lists, folders with their sub-folders.

Lists (``List``, ``NodeList``, ``PodList``, ...) are taken apart. A KAI snapshot, the ZIP with ``snapshot.json``, holds
its objects under ``rawObjects``. YAML needs the package PyYAML (extra ``k8s``); texts that look like dates stay texts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fastsim.errors import InputError, short
from fastsim.foundation.limits.packed_file import is_archived, most_bytes, opened_text, too_large
from fastsim.foundation.nested_text import json_value, json_with_list
from fastsim.foundation.parquet import one_line
from fastsim.kubernetes.pod_rules.kept_parts import SharedParts
from fastsim.kubernetes.yaml_text import yaml_documents

ENDINGS = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz", ".zip", ".gzip")
"""Endings of files that are read from a folder; others are ignored."""
SNAPSHOT = "snapshot.json"
"""The one file in a KAI snapshot."""
DEEPEST = 8
"""Most levels of lists inside lists."""


EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
"""Types of the events of a watch."""
BLANKS = re.compile(r"\s*")


class _Written(NamedTuple):
    where: str
    body: Mapping[str, Any]
    kind: str


class Manifest(_Written):
    """One object as it was written, its place for messages, and its kind: Node, Pod, Job, ..."""

    __slots__ = ()

    def __new__(cls, where: str, body: Mapping[str, Any]) -> Manifest:
        """The object in ``body``."""
        kind = body.get("kind")
        return super().__new__(cls, where, body, kind if isinstance(kind, str) else "")

    @property
    def name(self) -> str:
        """Its name, "" if it has none."""
        return str(mapping(self.body, "metadata", self.where).get("name") or "")

    def part(self, *keys: str) -> Mapping[str, Any]:
        """The mapping under keys, one in the other; empty if there is none."""
        part, where = self.body, self.where
        if len(keys) == 1 and type(found := part.get(keys[0])) is dict:  # nearly always
            return found
        for number, key in enumerate(keys):
            part = mapping(part, key, ": ".join((where, *keys[:number])) if number else where)
        return part


class Notices(Counter[str]):
    """Numbers of what is not honoured, by text, and an example of each: the first object that the text is ``about``."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self.about, self.examples = "", dict[str, str]()
        super().__init__()
        self.update(counts or {})

    def __setitem__(self, text: str, count: int) -> None:
        if self.about:
            self.examples.setdefault(text, self.about)
        super().__setitem__(text, count)

    def update(self, counts: Any = (), /, **further: int) -> None:
        """Add these counts and their examples."""
        if not counts and not further:
            return
        for text, count in Counter(counts, **further).items():
            if text in getattr(counts, "examples", ()):
                self.examples.setdefault(text, counts.examples[text])
            self[text] = self[text] + count

    def such_as(self, text: str) -> str:
        """The example of a text, as the end of a sentence; "" without one."""
        return f", such as {self.examples[text]}" if text in self.examples and " such as " not in text else ""

    @property
    def lines(self) -> list[str]:
        """The texts, each with its number and an example."""
        return [f"{text}: {count:,}{self.such_as(text)}" for text, count in sorted(self.items())]


def counted_about(notices: Counter[str], name: str) -> None:
    """From now on, what is counted is about the object of this name; "" if it is about none."""
    if isinstance(notices, Notices):
        notices.about = name


def manifests(path: str | os.PathLike[str], digests: list[str] | None = None) -> list[Manifest]:
    """Every object of a file, or of all files in a folder and its sub-folders, in order of their paths.

    A text with commas is several paths, unless a file or folder has that very name.
    ``digests`` gets the SHA-256 of each text that is read.
    """
    root = Path(path)
    if "," in str(path) and not os.path.exists(path):
        return [item for part in str(path).split(",") for item in manifests(part.strip(), digests)]
    if not os.path.exists(path) and not is_archived(path):  # not that of Path, to which a long text is an OSError
        raise InputError(str(path), "no such file or folder", "Kubernetes objects (YAML or JSON)")
    files = sorted(file for file in root.rglob("*") if str(file).endswith(ENDINGS)) if root.is_dir() else [root]
    objects = [item for file in files if file.is_file() or is_archived(file) for item in _read(file, digests)]
    if not objects:
        raise InputError(str(path), "no objects", f"Kubernetes objects in files that end in {', '.join(ENDINGS)}")
    return objects


def manifests_in(where: str, body: Any) -> list[Manifest]:
    """The object in `body`, or the objects of a list."""
    return list(_apart(where, body, 0))


def mapping(parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """The mapping under a key; absent and null are empty, anything else is an InputError."""
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict | Mapping):  # a dict is recognised sooner
        raise InputError(f"{where}: {key}", short(value), "a mapping of names to values")
    return value


def sequence(parent: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """The list of mappings under a key; absent and null are empty, anything else is an InputError."""
    value = parent.get(key)
    if value is None:
        return []
    listed: list[Mapping[str, Any]] = value if isinstance(value, list) else []
    fine = listed is value
    for item in listed:
        fine = fine and isinstance(item, dict | Mapping)
    if not fine:
        raise InputError(f"{where}: {key}", short(value), "a list of mappings")
    return listed


def _read(path: Path, digests: list[str] | None) -> Iterator[Manifest]:
    try:
        if zipfile.is_zipfile(path):
            yield from _snapshot(path, digests)
            return
        documents = _documents(path, digests)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), one_line(error), "a text file in UTF-8") from None
    listed: dict[object, Manifest] = {}
    for number, document in enumerate(documents, start=1):
        where = str(path) if len(documents) == 1 else f"{path}: document {number}"
        if isinstance(document, Mapping) and document.get("type") in EVENTS and "object" in document:
            _take_in(listed, where, document)
        elif document is not None:
            listed.update(((number, place), item) for place, item in enumerate(_apart(where, document, 0)))
    yield from listed.values()


def _take_in(listed: dict[object, Manifest], where: str, event: Mapping[str, Any]) -> None:
    """Change the objects by an event of a watch, which has a whole object; a bookmark has none."""
    kind, changed = event["type"], mapping(event, "object", where)
    if kind == "ERROR":
        raise InputError(where, short(changed.get("message") or changed), "objects, not an error of the API server")
    for item in _apart(where, changed, 0) if kind != "BOOKMARK" else ():
        group = str(item.body.get("apiVersion") or "").rpartition("/")[0]
        key = group, item.kind, item.part("metadata").get("namespace"), item.name
        listed.pop(key, None)
        if kind != "DELETED":
            listed[key] = item


def _documents(path: Path, digests: list[str] | None) -> list[Any]:
    with opened_text(path) as file:
        text = file.read()
    _note(text.encode() if digests is not None else b"", digests)
    return _json_documents(str(path), text) if path.name.endswith((".json", ".json.gz")) else _yaml(str(path), text)


def _apart(where: str, body: Any, depth: int) -> Iterator[Manifest]:
    """The object, or the objects of a list."""
    if isinstance(body, Mapping) and body.get("kind") == "Status" and body.get("message"):
        raise InputError(where, short(body["message"]), "objects, not an error of the API server")
    if not isinstance(body, Mapping) or not isinstance(body.get("kind"), str):
        raise InputError(where, short(body), "a Kubernetes object: a mapping with kind and metadata")
    kind = body["kind"]
    if not kind.endswith("List"):
        name = str(mapping(body, "metadata", where).get("name") or "")
        yield Manifest(f"{where}: {kind} {name}" if name else f"{where}: {kind}".rstrip(), body)
        return
    if depth == DEEPEST:
        raise InputError(where, "lists in lists", f"at most {DEEPEST} deep")
    for number, item in enumerate(sequence(body, "items", where), start=1):
        # Items of a typed list may lack their kind.
        typed = item if item.get("kind") else {**item, "kind": kind.removesuffix("List") or None}
        yield from _apart(f"{where}: item {number}", typed, depth + 1)


def _note(content: bytes, digests: list[str] | None) -> None:
    """Note the SHA-256 of what was read, if it is asked for."""
    if digests is not None:
        digests.append(hashlib.sha256(content).hexdigest())


def _snapshot(path: Path, digests: list[str] | None) -> Iterator[Manifest]:
    try:
        content = _unpacked(path)
        _note(content, digests)
        document = _json(f"{path}: {SNAPSHOT}", content.decode("utf-8"))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise InputError(str(path), one_line(error), f"a KAI snapshot: a ZIP with {SNAPSHOT}") from None
    where = f"{path}: rawObjects"
    groups = mapping(document if isinstance(document, Mapping) else {}, "rawObjects", str(path))
    if not groups:
        raise InputError(str(path), "no rawObjects", "a KAI snapshot with its objects")
    for group in groups:
        if groups[group] is None:
            continue
        kind = KAI_KINDS.get(group, group)
        for number, item in enumerate(sequence(groups, group, where), start=1):
            yield from _apart(f"{where}: {group} {number}", {**item, "kind": item.get("kind") or kind}, 0)


KAI_KINDS = {
    "nodes": "Node", "pods": "Pod", "queues": "Queue", "podGroups": "PodGroup", "resourceClaims": "ResourceClaim",
    "resourceSlices": "ResourceSlice", "deviceClasses": "DeviceClass",
}  # fmt: skip
"""Kinds of the groups of a KAI snapshot; a group of another name holds a kind of that name."""


def _json_documents(where: str, text: str) -> list[Any]:
    """The value of a JSON text, or several one after another, as ``kubectl get --watch`` and ``jq -c`` write them."""
    begin = _after_blanks(text, 0)
    if text[begin : begin + 1] not in ("", "[", "{"):  # what kubectl says instead of objects
        raise InputError(where, short(text[begin:].partition("\n")[0]), "Kubernetes objects as JSON")
    shared: defaultdict[object, SharedParts] = defaultdict(SharedParts)

    def share(items: list[Any]) -> None:
        mappings = [item for item in items if isinstance(item, dict)]
        for kind in {str(item.get("kind")) for item in mappings}:
            shared[kind].share(item for item in mappings if str(item.get("kind")) == kind)

    try:
        return [json_with_list(text, "items", share)]
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise InputError(where, one_line(error), "JSON") from None
    except ValueError as error:
        raise InputError(where, one_line(error), "JSON") from None
    return [_json(where, part) for part in _one_after_another(where, text)]


def _one_after_another(where: str, text: str) -> Iterator[str]:
    decoder, at = json.JSONDecoder(), _after_blanks(text, 0)
    while at < len(text):
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError(where, one_line(error), "JSON") from None
        yield text[at:end]
        at = _after_blanks(text, end)


def _after_blanks(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return at if found is None else found.end()


def _json(where: str, text: str) -> Any:
    try:
        return json_value(text)
    except ValueError as error:
        raise InputError(where, one_line(error), "JSON") from None


def _yaml(where: str, text: str) -> list[Any]:
    try:
        return yaml_documents(where, text)
    except ValueError as error:
        raise InputError(where, one_line(error), "YAML") from None


def _unpacked(path: Path) -> bytes:
    """The one file in a snapshot, read up to the limit of packed files."""
    with zipfile.ZipFile(path) as archive, archive.open(SNAPSHOT) as packed:
        content = packed.read(most_bytes() + 1)
    if len(content) > most_bytes():
        raise too_large(f"{path}: {SNAPSHOT}")
    return content
