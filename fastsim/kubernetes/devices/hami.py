"""Boards that HAMi's and Volcano's device plugins register: an annotation of the node lists them.

The text has one entry for each board, ended by ``:``, with commas between its fields: name, number of pods that may
share it, MiB, percent of cores, model, NUMA node, whether it is healthy. Later versions write a list in JSON. The
amount of ``nvidia.com/gpu`` on such a node is the number of boards times the pods that may share each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.foundation.nested_text import json_value
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.quantity import MOST

REGISTERED = ("hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register")
"""Annotations that list a node's boards."""
EXPECTED = "boards such as GPU-1,10,15360,100,NVIDIA-Tesla T4,0,true: or the same as JSON"


class Board(NamedTuple):
    """One board: MiB, the label's name of its model ("" = unknown)."""

    memory_mib: int
    product: str = ""


def boards(node: Manifest) -> list[Board]:
    """The healthy boards that a node registered; none without the annotation."""
    for name in REGISTERED:
        text = str(node.part("metadata", "annotations").get(name) or "").strip()
        if text:
            return _boards(text, f"{node.where}: metadata: annotations: {name}")
    return []


def _boards(text: str, where: str) -> list[Board]:
    try:
        if text.startswith("["):
            entries = [_named(entry) for entry in json_value(text)]
        else:
            entries = [_listed(entry.split(",")) for entry in text.split(":") if entry.strip()]
        if any(board and board.memory_mib > MOST for board in entries):
            raise ValueError("memory")
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        raise InputError(where, repr(text[:80]), EXPECTED) from None
    return [board for board in entries if board is not None]


def _named(entry: Mapping[str, Any]) -> Board | None:
    board = Board(int(entry["devmem"]), _product(str(entry.get("type") or "")))
    return board if entry.get("health", True) else None


def _listed(fields: list[str]) -> Board | None:
    """Fields by place; Volcano's entries have no NUMA node, and older ones no cores."""
    texts = [text for text in map(str.strip, fields[3:]) if text]
    health = next((text for text in texts if text.lower() in ("true", "false")), "true")
    model = next((text for text in texts if not text.isdigit() and text.lower() not in ("true", "false")), "")
    return Board(int(fields[2]), _product(model)) if health.lower() == "true" else None


def _product(model: str) -> str:
    """The name of the model in the form of a label: hyphens for blanks, and the maker once at most."""
    plain = model.strip().replace(" ", "-")
    return plain.removeprefix("NVIDIA-") if plain.startswith(("NVIDIA-NVIDIA-", "NVIDIA-Tesla-")) else plain
