"""Kubernetes objects from YAML and JSON: files with one document or several, lists, folders with their sub-folders.

Lists (``List``, ``NodeList``, ``PodList``, ...) are taken apart. A KAI snapshot, the ZIP with ``snapshot.json``, holds
its objects under ``rawObjects``. YAML needs the package PyYAML (extra ``k8s``); texts that look like dates stay texts.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fastsim.errors import InputError, short
from fastsim.foundation.limits.packed_file import is_archived, most_bytes, opened_text, too_large
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.kubernetes.yaml_text import yaml_documents

ENDINGS = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz", ".zip", ".gzip")
"""Endings of files that are read from a folder; others are ignored."""
SNAPSHOT = "snapshot.json"
"""The one file in a KAI snapshot."""
DEEPEST = 8
"""Most levels of lists inside lists."""


class Manifest(NamedTuple):
    """One object as it was written, and its place for messages."""

    where: str
    body: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Node, Pod, Job, ..."""
        return str(self.body.get("kind") or "")

    @property
    def name(self) -> str:
        """Its name, "" if it has none."""
        return str(mapping(self.body, "metadata", self.where).get("name") or "")

    def part(self, *keys: str) -> Mapping[str, Any]:
        """The mapping under keys, one in the other; empty if there is none."""
        part, where = self.body, self.where
        for number, key in enumerate(keys):
            part = mapping(part, key, ": ".join((where, *keys[:number])) if number else where)
        return part


def manifests(path: str | os.PathLike[str]) -> list[Manifest]:
    """Every object of a file, or of all files in a folder and its sub-folders, in order of their paths.

    A text with commas is several paths, unless a file or folder has that very name.
    """
    root = Path(path)
    if "," in str(path) and not os.path.exists(path):
        return [item for part in str(path).split(",") for item in manifests(part.strip())]
    if not os.path.exists(path) and not is_archived(path):  # not that of Path, to which a long text is an OSError
        raise InputError(str(path), "no such file or folder", "Kubernetes objects (YAML or JSON)")
    files = sorted(file for file in root.rglob("*") if str(file).endswith(ENDINGS)) if root.is_dir() else [root]
    objects = [item for file in files if file.is_file() or is_archived(file) for item in _read(file)]
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


def _read(path: Path) -> Iterator[Manifest]:
    try:
        if zipfile.is_zipfile(path):
            yield from _snapshot(path)
            return
        documents = _documents(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), one_line(error), "a text file in UTF-8") from None
    for number, document in enumerate(documents, start=1):
        where = str(path) if len(documents) == 1 else f"{path}: document {number}"
        if document is not None:
            yield from _apart(where, document, 0)


def _documents(path: Path) -> list[Any]:
    with opened_text(path) as file:
        text = file.read()
    return [_json(str(path), text)] if path.name.endswith((".json", ".json.gz")) else _yaml(str(path), text)


def _apart(where: str, body: Any, depth: int) -> Iterator[Manifest]:
    """The object, or the objects of a list."""
    if not isinstance(body, Mapping) or not isinstance(body.get("kind"), str):
        raise InputError(where, short(body), "a Kubernetes object: a mapping with kind and metadata")
    kind = body["kind"]
    if not kind.endswith("List"):
        named = Manifest(where, body)
        yield named._replace(where=f"{where}: {kind} {named.name}".rstrip())
        return
    if depth == DEEPEST:
        raise InputError(where, "lists in lists", f"at most {DEEPEST} deep")
    for number, item in enumerate(sequence(body, "items", where), start=1):
        # Items of a typed list may lack their kind.
        typed = item if item.get("kind") else {**item, "kind": kind.removesuffix("List") or None}
        yield from _apart(f"{where}: item {number}", typed, depth + 1)


def _snapshot(path: Path) -> Iterator[Manifest]:
    try:
        document = _json(f"{path}: {SNAPSHOT}", _unpacked(path).decode("utf-8"))
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


KAI_KINDS = {"nodes": "Node", "pods": "Pod", "queues": "Queue", "podGroups": "PodGroup"}
"""Kinds of the groups of a KAI snapshot; a group of another name holds a kind of that name."""


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
