"""Pods from series of kube-state-metrics (``kube_pod_...``): times, and requests of processors, memory and GPUs.

A pod arrives when it was created. It ends at its completion time, or when its phase is first seen to be over, or at the
first moment of the record at which it is gone. Its request is the sum over its containers, or that of an init container
if that is more. Names of resources are those of the series: ``nvidia_com_gpu``, ``nvidia_com_mig_1g_10gb``.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from fastsim.errors import InputError, reading
from fastsim.telemetry.metric_names import FOUND_AS
from fastsim.telemetry.prometheus import saved_samples
from fastsim.telemetry.readings_table import Sample
from fastsim.telemetry.sample_lines import file_samples
from fastsim.workload import Workload
from fastsim.workload import schema as s

REQUESTS, INIT_REQUESTS = "kube_pod_container_resource_requests", "kube_pod_init_container_resource_requests"
PHASE = "kube_pod_status_phase"
TIMES = {
    "kube_pod_created": "created_s", "kube_pod_start_time": "started_s", "kube_pod_completion_time": "ended_s",
}  # fmt: skip
"""Series whose value is a time of the pod, Unix seconds."""
OWNERS = {"kube_pod_owner": "owner", "kube_pod_info": "created_by"}
"""Series with the kind and the name of a pod's controller, and the beginning of the labels that have them."""
NAMES = (*TIMES, PHASE, REQUESTS, INIT_REQUESTS, *OWNERS)
"""The series that are read."""
OVER = ("Succeeded", "Failed")
"""Phases of pods that hold nothing any more."""
GPUS = ("nvidia_com_gpu", "amd_com_gpu", "gpu_intel_com_i915", "gpu_intel_com_xe", "habana_ai_gaudi")
"""Resources that are whole GPUs."""
MOST = 1e15
"""Most that a container may request of a resource."""
_INSTANCE = re.compile(r"nvidia_com_mig_(\d+g)_(\d+gb)(_me)?")


class PodsLeftOut(UserWarning):
    """Pods, or amounts that they request, are not in the workload."""


class _Record(NamedTuple):
    """All moments of the record, and the shortest time between two samples of a pod (infinite if none has two)."""

    moments_ms: Sequence[int]
    step_ms: float

    def gone_s(self, last_ms: int) -> float | None:
        """When a pod was gone that was last seen at a moment; None if it may be there at the end of the record."""
        at = bisect_left(self.moments_ms, last_ms + self.step_ms)
        return self.moments_ms[at] / 1000 if at < len(self.moments_ms) else None


@dataclass
class _Pod:
    """The life of one pod by its series: Unix seconds, and the largest requests of its containers."""

    last_ms: int = 0
    first_ms: int | None = None
    created_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    over_ms: int | None = None
    controller: tuple[str, str] | None = None
    requests: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """One sample of a series of this pod."""
        labels, value = sample.labels, sample.value
        self.first_ms = sample.ts_ms if self.first_ms is None else min(self.first_ms, sample.ts_ms)
        self.last_ms = max(self.last_ms, sample.ts_ms)
        if sample.name in TIMES:
            setattr(self, TIMES[sample.name], value)
        elif sample.name in OWNERS:
            kind, name = (labels.get(f"{OWNERS[sample.name]}_{part}", "") for part in ("kind", "name"))
            # A pod without a controller has a name in angle brackets there.
            self.controller = (kind, name) if name and not name.startswith("<") else self.controller
        elif sample.name == PHASE and value == 1 and labels.get("phase") in OVER:
            self.over_ms = sample.ts_ms if self.over_ms is None else min(self.over_ms, sample.ts_ms)
        elif sample.name in (REQUESTS, INIT_REQUESTS):
            key = sample.name, _label(labels, "container"), labels.get("resource", "")
            self.requests[key] = max(self.requests.get(key, value), value)

    def end_s(self, record: _Record) -> float | None:
        """When the pod ended; None if it is there at the end of the record."""
        if self.ended_s is not None:
            return self.ended_s
        return record.gone_s(self.last_ms) if self.over_ms is None else self.over_ms / 1000

    def amounts(self) -> dict[str, float]:
        """The request by resource."""
        sums: defaultdict[str, float] = defaultdict(float)
        most: defaultdict[str, float] = defaultdict(float)
        for (series, _, resource), value in self.requests.items():
            if series == REQUESTS:
                sums[resource] += value
            else:
                most[resource] = max(most[resource], value)
        return {name: max(sums[name], most[name]) for name in sorted({*sums, *most})}


def pods_of(paths: Sequence[str | os.PathLike[str]], name: str = "kube-state-metrics") -> Workload:
    """The pods in text files, dumps of promtool or saved answers of Prometheus; second 0 is the first arrival."""
    where = ", ".join(map(str, paths))
    with reading(where, "series of kube-state-metrics"):
        return _workload(where, *_gathered(_samples(paths)), name)


def _workload(where: str, pods: Mapping[tuple[str, str, str], _Pod], record: _Record, name: str) -> Workload:
    notices: Counter[str] = Counter()
    rows = [_row(where, key, pod, record, notices) for key, pod in sorted(pods.items())]
    listed = sorted((row for row in rows if row is not None), key=lambda row: (row[s.SUBMIT_S], row[s.NATIVE_ID]))
    if not listed:
        raise InputError(where, "no pods", f"series of kube-state-metrics: {', '.join(NAMES)}")
    for text, count in sorted(notices.items()):
        warnings.warn(f"{where}: {text}: {count:,}", PodsLeftOut, stacklevel=2)
    origin = listed[0][s.SUBMIT_S]
    for row in listed:
        row |= {key: row[key] - origin for key in (s.SUBMIT_S, s.ORIG_START_S, s.ORIG_END_S) if row[key] is not None}
    table = pl.DataFrame(listed, infer_schema_length=None, schema_overrides=_KINDS).with_row_index(s.POD_ID)
    kept = [column for column in table.columns if table[column].null_count() < len(table) or column == s.DURATION_S]
    return Workload.from_arrow(table.select(kept).with_columns(pl.col(s.POD_ID).cast(pl.Int64)), name=name)


_KINDS = {
    **dict.fromkeys((s.SUBMIT_S, s.DURATION_S, s.ORIG_START_S, s.ORIG_END_S), pl.Float64),
    **dict.fromkeys((s.TENANT, s.NATIVE_ID, s.NATIVE_JOB_ID, s.MIG), pl.String),
}


def _samples(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Sample]:
    for path in paths:
        found = saved_samples(path) if Path(path).suffix == ".json" else file_samples([path], NAMES)
        yield from (sample for sample in found if sample.name in NAMES and math.isfinite(sample.value))


def _gathered(samples: Iterable[Sample]) -> tuple[dict[tuple[str, str, str], _Pod], _Record]:
    """The pods by namespace, name and uid, and the moments of the record."""
    pods: defaultdict[tuple[str, str, str], _Pod] = defaultdict(_Pod)
    moments_ms: set[int] = set()
    step_ms = math.inf
    for sample in samples:
        labels = sample.labels
        pod = pods[_label(labels, "namespace"), _label(labels, "pod"), labels.get("uid", "")]
        if pod.first_ms is not None and sample.ts_ms > pod.last_ms:
            step_ms = min(step_ms, sample.ts_ms - pod.last_ms)
        pod.add(sample)
        moments_ms.add(sample.ts_ms)
    return pods, _Record(sorted(moments_ms), step_ms)


def _label(labels: Mapping[str, str], column: str) -> str:
    return next((labels[name] for name in FOUND_AS[column] if labels.get(name)), "")


def _row(
    where: str, key: tuple[str, str, str], pod: _Pod, record: _Record, notices: Counter[str]
) -> dict[str, Any] | None:  # fmt: skip
    """The pod as columns; None if it ended without having started."""
    started_s, ended_s = pod.started_s, pod.end_s(record)
    named = "/".join(key[:2])
    if ended_s is not None and started_s is None:
        notices["pods that are left out, because they ended and no series says when they started"] += 1
        return None
    if ended_s is not None and started_s is not None and ended_s < started_s:
        raise InputError(f"{where}: pod {named}: end", f"{ended_s - started_s:g} s after the start", "0 s or more")
    for (_, _, resource), amount in pod.requests.items():
        if not 0 <= amount <= MOST:
            raise InputError(f"{where}: pod {named}: {resource}", f"{amount:g}", f"0 to {MOST:g}")
    first_s = (pod.first_ms or 0) / 1000
    created_s = next((time for time in (pod.created_s, started_s) if time is not None), first_s)
    return {
        s.SUBMIT_S: created_s, s.DURATION_S: None if ended_s is None or started_s is None else ended_s - started_s,
        **_requests(pod.amounts(), notices), s.TENANT: key[0] or None, s.ORIG_START_S: started_s,
        s.ORIG_END_S: ended_s, s.NATIVE_ID: named,
        s.NATIVE_JOB_ID: pod.controller and "/".join((pod.controller[0], key[0], pod.controller[1])),
    }  # fmt: skip


def _requests(amounts: Mapping[str, float], notices: Counter[str]) -> dict[str, Any]:
    """Columns of a request; amounts of other resources are counted."""
    gpus, instances = 0, []
    for name, amount in amounts.items():
        if name in GPUS:
            gpus += round(amount)
        elif (profile := _INSTANCE.fullmatch(name)) is not None:
            many = round(amount)
            instances += [f"{many}*{profile[1]}.{profile[2]}{'+me' if profile[3] else ''}"] if many else []
        elif name not in ("cpu", "memory"):
            notices[f"pods that request {name}, which is left out"] += 1
    return {
        s.CPU_MILLI: math.ceil(round(1000 * amounts.get("cpu", 0.0), 6)),
        s.MEMORY_MIB: math.ceil(amounts.get("memory", 0.0) / 2**20), s.NUM_GPU: gpus,
        s.GPU_MILLI: 1000 if gpus else 0, s.MIG: "+".join(instances) or None,
    }  # fmt: skip
