"""Samples of every GPU worked out one by one from the placements of a run: twin of ``telemetry_sampler``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.engine.sampling.pod_profiles import PodProfiles
from fastsim.telemetry.reading_model import Device, Resident, readings
from fastsim.telemetry.sample_and_hold import refresh_times, seen_s
from fastsim.telemetry.telemetry import Telemetry

Row = dict[str, Any]
NAMES = {"copy_pct": "copy_pct", "energy_j": "energy_j", "memory_used_mib": "memory_mib", "power_w": "power_w",
         "temperature_c": "temperature_c", "util_pct": "util_pct"}  # fmt: skip


def reference_samples(
    telemetry: Telemetry, cluster: Cluster, stays: Sequence[Row], begin_s: float, end_s: float, seed: int
) -> Iterator[Row]:
    """Second, node, device number, reading, value and the only pod there, for each sample of each device.

    ``stays`` are rows of placements with what their pods ask for.
    """
    first, last = math.ceil(begin_s / telemetry.every_s), math.floor(end_s / telemetry.every_s)
    times = [number * telemetry.every_s for number in range(first, last + 1)]
    looks = refresh_times(begin_s, end_s, telemetry.refresh_s, seed) if telemetry.refresh_s else None
    for position, node in enumerate(cluster.offered.to_pylist()):
        for index in range(node["num_gpu"]):
            device = telemetry.device(node["gpu_model"], cluster)
            here = [row for row in stays if row["node_id"] == position and index in row["gpu_ids"]]
            for time in times:
                seen = time if looks is None else float(seen_s(time, looks))
                values = device_sample(telemetry, device, here, begin_s, end_s, seen)
                for name, value in values.items():
                    yield {"t_s": time, "node": position, "gpu_index": index, "metric": name, "value": value}


def device_sample(
    telemetry: Telemetry, device: Device, stays: Sequence[Row], begin_s: float, end_s: float, seen_s: float
) -> Row:
    """What one device tells at one second; who comes in that second is not seen, who leaves is not any more."""
    profiles = PodProfiles(telemetry.profiles, [device])
    there = []
    for row in stays:
        if row["start_s"] < seen_s:
            profile = profiles.profile(row.get("workload"), row.get("gpu_milli"), row.get("gpu_memory_mib"), device)
            there.append(Resident(row["start_s"], end_s + 1 if row["end_s"] is None else row["end_s"], profile))
    found = readings(there, device, begin_s)
    values: Row = {name: float(found.at(theirs, seen_s, device)) for name, theirs in NAMES.items()}
    only = [
        row["pod_id"] for row in stays if row["start_s"] < seen_s and (row["end_s"] is None or row["end_s"] > seen_s)
    ]
    return {**values, "memory_free_mib": max(device.memory_mib - values["memory_used_mib"], 0.0),
            "pod": only[0] if len(only) == 1 else None}  # fmt: skip
