"""Boards that HAMi's and Volcano's device plugins register: an annotation of the node lists them.

The text has one entry for each board, ended by ``:``, with commas between its fields: name, number of pods that may
share it, MiB, percent of cores, model, NUMA node, whether it is healthy. Later versions write a list in JSON. The
amount of ``nvidia.com/gpu`` on such a node is the number of boards times the pods that may share each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.foundation.nested_text import json_value
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.quantity import MOST

ALLOCATED = "hami.io/vgpu-devices-allocated"
"""Annotation of a pod with its boards: entries ended by ``:``, of one container after the other with ``;`` between."""
USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
"""Annotations with parts of the names of models that a pod may use, or may not use."""
USE_BOARD, AVOID_BOARD = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
"""Annotations with the names of boards that a pod may use, or may not use."""
CHOICES = (USE_TYPE, AVOID_TYPE, USE_BOARD, AVOID_BOARD)
"""Annotations by which a pod chooses boards."""
REGISTERED = ("hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register")
"""Annotations that list a node's boards."""
EXPECTED = "boards such as GPU-1,10,15360,100,NVIDIA-Tesla T4,0,true: or the same as JSON"


class Board(NamedTuple):
    """One board: MiB, the label's name of its model ("" = unknown), its own name."""

    memory_mib: int
    product: str = ""
    uuid: str = ""

    def is_allowed(self, annotations: Mapping[str, Any]) -> bool:
        """Whether a pod with these annotations may use the board; letters may be small or large."""
        model = f"NVIDIA-{self.product}".upper()
        types = {name: [text.replace(" ", "-").upper() in model for text in _texts(annotations, name)]
                 for name in (USE_TYPE, AVOID_TYPE)}  # fmt: skip
        if any(types[AVOID_TYPE]) or self.uuid in _texts(annotations, AVOID_BOARD):
            return False
        named = _texts(annotations, USE_BOARD)
        return any(types[USE_TYPE] or [True]) and (not named or self.uuid in named)


def allocated(annotations: Mapping[str, Any], boards: Sequence[Board]) -> list[int] | None:
    """Numbers of the boards that a pod holds, once for each container; None if they are not said or unknown."""
    text = str(annotations.get(ALLOCATED) or "")
    names = [entry.split(",")[0] for part in text.split(";") for entry in part.split(":") if entry.strip()]
    places = {board.uuid: number for number, board in enumerate(boards)}
    return [places[name] for name in names] if names and all(name in places for name in names) else None


def allowed_nodes(annotations: Mapping[str, Any], boards_of: Mapping[str, Sequence[Board]]) -> BoardChoice | None:
    """The nodes with boards that a pod chooses by its annotations; None without such annotations."""
    if not annotations or not any(_texts(annotations, name) for name in CHOICES):
        return None
    allowed = {name: [board.is_allowed(annotations) for board in boards] for name, boards in boards_of.items()}
    some = [name for name, fits in allowed.items() if any(fits)]
    return BoardChoice(some, any(not all(allowed[name]) for name in some))


class BoardChoice(NamedTuple):
    """Nodes of which some boards are allowed; ``partial`` if on some of them others are not."""

    nodes: list[str]
    partial: bool


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
    board = Board(int(entry["devmem"]), _product(str(entry.get("type") or "")), str(entry.get("id") or ""))
    return board if entry.get("health", True) else None


def _listed(fields: list[str]) -> Board | None:
    """Fields by place; Volcano's entries have no NUMA node, and older ones no cores."""
    texts = [text for text in map(str.strip, fields[3:]) if text]
    health = next((text for text in texts if text.lower() in ("true", "false")), "true")
    model = next((text for text in texts if not text.isdigit() and text.lower() not in ("true", "false")), "")
    return Board(int(fields[2]), _product(model), fields[0].strip()) if health.lower() == "true" else None


def _texts(annotations: Mapping[str, Any], name: str) -> list[str]:
    return [text.strip() for text in str(annotations.get(name) or "").split(",") if text.strip()]


def _product(model: str) -> str:
    """The name of the model in the form of a label: hyphens for blanks, and the maker once at most."""
    plain = model.strip().replace(" ", "-")
    return plain.removeprefix("NVIDIA-") if plain.startswith(("NVIDIA-NVIDIA-", "NVIDIA-Tesla-")) else plain
