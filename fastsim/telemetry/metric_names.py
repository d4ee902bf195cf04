"""Exporters' names, units and labels for readings of a GPU, in three generations.

`dcgm1` are the names of the first exporter, `dcgm2` those of 2.x to 4.8, `dcgm4.9` those since 4.9. Of the last only
temperature, utilisation and power were seen in use; the other names follow the rule that a name ends in its unit, and a
table of one's own, in the form of `telemetry/tables/metric_names.csv`, replaces them.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastsim.errors import InputError, ScenarioError

TABLES = Path(__file__).parent / "tables"

PROFILES = ("dcgm1", "dcgm2", "dcgm4.9")
"""Generations of names."""


class Metric(NamedTuple):
    """An exporter's name and type of a quantity, and its units in one unit of ours."""

    quantity: str
    name: str
    type: str
    per: float

    def theirs(self, value: float) -> float:
        """Our value in their unit."""
        return value * self.per

    def ours(self, value: float) -> float:
        """Their value in our unit: the number of 12 digits that is theirs again, if there is one.

        So a reading with no more digits does not change there and back, whatever the unit.
        """
        if self.per == 1.0:
            return value
        plain = value / self.per
        if not math.isfinite(plain):
            return plain
        near = (float(f"{plain:.12g}"), plain, math.nextafter(plain, math.inf), math.nextafter(plain, -math.inf))
        return next((number for number in near if self.theirs(number) == value), plain)


DESCRIPTIONS = {
    "util_pct": "Share of time in which the GPU ran any kernel",
    "copy_pct": "Share of time in which its memory was used", "temperature_c": "Temperature of the GPU",
    "memory_temperature_c": "Temperature of its memory",
    "power_w": "Power that the board draws", "energy_j": "Energy that the board has drawn since it was started",
    "memory_used_mib": "Memory that is in use", "memory_free_mib": "Memory that is free",
}  # fmt: skip
"""What each quantity is."""
UNITS = {
    ("pct", 1): "percent", ("pct", 0.01): "a number from 0 to 1", ("c", 1): "degrees Celsius", ("w", 1): "watts",
    ("j", 1): "joules", ("j", 1000): "millijoules", ("mib", 1): "MiB", ("mib", 1048576): "bytes",
}  # fmt: skip
"""Words for units of exporters, by ours and how many of theirs that is."""


class Labels(NamedTuple):
    """Names of a device's labels; "" is left out."""

    gpu_index: str = "gpu"
    gpu_uuid: str = "UUID"
    model: str = "modelName"
    node: str = "Hostname"
    namespace: str = "namespace"
    pod: str = "pod"
    container: str = "container"


LABELS = {
    "dcgm1": Labels(gpu_uuid="uuid", model="", namespace="", pod="", container=""),
    "dcgm2": Labels(),
    "dcgm4.9": Labels(node="hostname"),
}
"""Labels by generation. The first has no label for the node, which is the target's; here it gets one."""
FOUND_AS: Mapping[str, tuple[str, ...]] = {
    "gpu_index": ("gpu",),
    "gpu_uuid": ("UUID", "uuid"),
    "model": ("modelName", "model"),
    "node": ("Hostname", "hostname", "node", "kubernetes_node", "instance"),
    "namespace": ("exported_namespace", "namespace"),
    "pod": ("exported_pod", "pod"),
    "container": ("exported_container", "container"),
}
"""Labels in which a column may be found, the first first: a target with labels of its own renames the exporter's."""
EXPORTER = "dcgm-exporter"
"""A part of the names of pods, or of their containers, that are exporters themselves."""
INSTANCE, INSTANCE_PROFILE = "GPU_I_ID", "GPU_I_PROFILE"
"""Labels of an instance of a partitioned GPU: its number on the board, and its profile, such as ``1g.10gb``."""


def metrics(profile: str, table: str | os.PathLike[str] | None = None) -> list[Metric]:
    """The readings of a generation, from the built-in table or one's own."""
    if profile not in PROFILES:
        raise ScenarioError("metric names: profile", repr(profile), f"one of {', '.join(PROFILES)}")
    path = TABLES / "metric_names.csv" if table is None else table
    return [metric for metric in _read(str(path), profile) if metric.name]


OF_INSTANCES = Metric("util_pct", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", 0.01)
"""Utilisation of an instance of a partitioned GPU (MIG); of whole GPUs it is not read."""
OF_BOARDS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO")
"""Utilisation of whole GPUs; it says nothing about an instance."""


def by_name(table: str | os.PathLike[str] | None = None) -> dict[str, Metric]:
    """Metrics by name, of all generations and of instances."""
    listed = {metric.name: metric for profile in PROFILES for metric in metrics(profile, table)}
    return {OF_INSTANCES.name: OF_INSTANCES} | listed


def described(metric: Metric) -> str:
    """What an exporter's metric is, and its unit: a line for readers of metrics."""
    unit = UNITS.get((metric.quantity.rpartition("_")[2], metric.per))
    text = DESCRIPTIONS.get(metric.quantity, metric.quantity)
    return f"{text}, {unit}." if unit else f"{text}."


def is_exporter(labels: Mapping[str, str]) -> bool:
    """Whether the pod of a series is an exporter itself: its job of Prometheus puts labels of its own before others."""
    return any(EXPORTER in labels.get(name, "") for name in ("pod", "container"))


def metric_of(name: str, labels: Mapping[str, str], names: Mapping[str, Metric]) -> Metric | None:
    """The metric of a series; None if it is not known for what the labels name: a whole GPU, or an instance."""
    metric = names.get(name)
    other = name in OF_BOARDS if labels.get(INSTANCE) else metric is OF_INSTANCES
    return None if other else metric


@cache
def _read(path: str, profile: str) -> list[Metric]:
    try:
        with open(path, encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, " ".join(str(error).split()), "a table of metric names (CSV)") from None
    listed = []
    for line, row in enumerate(rows, start=2):
        try:
            metric = Metric(row["quantity"], row[profile], row["type"], float(row[f"{profile}_per"] or 1))
        except (KeyError, TypeError, ValueError):
            expected = f"columns quantity, type, {profile} and {profile}_per, which is a number"
            raise InputError(f"{path}:{line}", row, expected) from None
        if metric.type not in ("gauge", "counter") or not metric.per > 0:
            raise InputError(f"{path}:{line}", row, "a gauge or counter, and units of more than 0")
        listed.append(metric)
    return listed
