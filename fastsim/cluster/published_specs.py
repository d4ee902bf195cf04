"""Gavel's cluster specifications: numbers of GPUs as text, `v100:p100:k80`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from fastsim.cluster.node_types import node_types
from fastsim.errors import InputError

MODELS = ("v100", "p100", "k80")
"""What the numbers of a specification count, in its order."""


def gavel_parts(spec: str | os.PathLike[str], per_server: str = "1:1:1") -> list[tuple[int, dict[str, Any]]]:
    """(count, columns) of each kind of node, models by name; a node has CPU and memory in proportion to its GPUs."""
    gpus = _numbers("cluster gavel", _specification(spec), 0)
    sizes = _numbers("cluster gavel: per_server", per_server, 1)
    parts = []
    for model in sorted(MODELS):
        count, size = gpus[model] // sizes[model], sizes[model]
        one = node_types()[model]
        shape = {"gpu_model": model, "num_gpu": size}
        shape |= {"cpu_milli": size * one.cpu_milli, "memory_mib": size * one.memory_mib}
        parts.append((count, {"name": model, **shape}))
    if not any(count for count, _ in parts):
        raise InputError("cluster gavel", f"{spec} in nodes of {per_server}", "one node at least")
    return parts


def _numbers(where: str, text: str, least: int) -> dict[str, int]:
    words = str(text).split(":")
    if len(words) != len(MODELS) or not all(word.isdecimal() and int(word) >= least for word in words):
        raise InputError(where, repr(text), f"three whole numbers of {least} or more: {':'.join(MODELS)}")
    return dict(zip(MODELS, map(int, words), strict=True))


def _specification(spec: str | os.PathLike[str]) -> str:
    """The text itself, or the only one in a file such as `{"philly": ["500:0:0"]}`."""
    if not str(spec).endswith(".json"):
        return str(spec)
    try:
        document = json.loads(Path(spec).read_text(encoding="utf-8"))
        found = [text for texts in document.values() for text in texts]
    except FileNotFoundError:
        raise InputError(str(spec), "no such file", "a JSON file of cluster specifications") from None
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputError(str(spec), "something else", 'JSON such as {"name": ["36:36:36"]}') from None
    if len(found) != 1:
        raise InputError(str(spec), f"{len(found)} specifications", "one; give the text of one instead")
    return str(found[0])
