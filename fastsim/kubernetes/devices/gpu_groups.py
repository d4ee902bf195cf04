"""Groups of pods that share a GPU in KAI and Run:ai: one group for each shared device, named by a label.

A pod that reserves the device requests it whole, beside the shares of the group. While shares of its group run on its
node, it counts without the device. All shares of a group are on one device; where no annotation names its number, it is
the first number on the node that no pod is known to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

GROUP = "runai-gpu-group"
"""Label with the name of the group; of several groups the name ends this label instead, behind a slash."""
RESERVATIONS = ("kai-resource-reservation", "runai-reservation")
"""Namespaces of pods that reserve devices."""

Row = dict[str, Any]


def groups_of(labels: Mapping[str, Any]) -> list[str]:
    """The groups that a pod is in, one for each device that it shares."""
    several = sorted(str(value) for key, value in labels.items() if str(key).startswith(f"{GROUP}/"))
    return several or ([str(labels[GROUP])] if labels.get(GROUP) else [])


def on_shared_devices(rows: Iterable[Row], devices: Mapping[str, int]) -> list[Row]:
    """The rows of pods, those of one group on one device; ``devices`` are the numbers of devices by node."""
    rows = list(rows)
    shares: dict[str, dict[str, list[int]]] = {}
    taken: dict[str, set[int]] = {}
    for row in rows:
        node = row["bound_node"]
        if node is None:
            continue
        taken.setdefault(node, set()).update(row["bound_gpus"] or ())
        if not _reserves(row):
            for group in row["gpu_groups"]:
                shares.setdefault(node, {})[group] = []
    for node, groups in shares.items():
        free = (number for number in range(devices.get(node, 0)) if number not in taken[node])
        for group in groups:
            groups[group] = [number for number in (next(free, None),) if number is not None]
    return [_on_device(row, shares.get(row["bound_node"], {})) for row in rows]


def _on_device(row: Row, groups: Mapping[str, list[int]]) -> Row:
    own = [group for group in row["gpu_groups"] if group in groups]
    if not own:
        return row
    if _reserves(row):
        return row | {"num_gpu": 0, "gpu_milli": 0, "gpu_memory_mib": None, "gpu_models": None, "bound_gpus": None}
    numbers = sorted(number for group in own for number in groups[group])
    known = row["bound_gpus"] is not None or len(numbers) != row["num_gpu"]
    return row if known else row | {"bound_gpus": numbers}


def _reserves(row: Row) -> bool:
    return bool(row["gpu_groups"]) and row["native_id"].partition("/")[0] in RESERVATIONS
