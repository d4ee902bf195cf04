"""Samples of every GPU during a run: starts and ends of stays in, rows of the telemetry table out.

A sample at a second is taken after ends of stays and before starts of that second. Memory follows the GPUs and the
pods in the system, not the run.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from fastsim.cluster.cluster import Cluster
from fastsim.engine.sampling.pod_profiles import PodProfiles
from fastsim.foundation import interrupts
from fastsim.foundation.limits.knobs import EXPORTER_SAMPLES, READINGS, REFRESH_S
from fastsim.telemetry.readings_table import SCHEMA
from fastsim.telemetry.telemetry import QUANTITIES, Telemetry
from fastsim_ext.state.gpu_readings import DEVICE_FIELDS, GpuReadings

Array = Any
Sink = Callable[[pa.RecordBatch], None]
"""A function that takes rows of the telemetry table."""
LOOKED_GPUS = 1 << 16
"""GPUs that are read between two checks of Ctrl-C."""
NO_POD = np.iinfo(np.int64).min
"""The pod of a GPU that has none or several."""
WINDOW_ROWS = 1 << 17
"""Rows that are collected in memory and sorted before they go to the sink."""
STAMP = {"fastsim.schema": "telemetry", "fastsim.schema_version": "1.0", "fastsim.source": "simulation"}
"""Metadata of a table of samples."""

NO_STAYS = {
    "t": np.zeros(0), "pod_id": np.zeros(0, np.int64), "gpu": np.zeros(0, np.int32), "profile": np.zeros(0, np.int32)
}  # fmt: skip
"""No stays."""


class Sampling:
    """The samples of one run, in order of time; ``sink`` takes the rows, None for a run without a table."""

    def __init__(self, telemetry: Telemetry, cluster: Cluster, seed: int, sink: Sink | None) -> None:
        self.telemetry, self.sink = telemetry, sink
        table = cluster.offered.select(["name", "num_gpu", "gpu_model"])
        self.node, self.index = _devices(table["num_gpu"].to_numpy())
        self.first__n = np.searchsorted(self.node, np.arange(len(table))).astype(np.int64)
        self.names = [name or str(row) for row, name in enumerate(table["name"].to_pylist())]
        self.models = table["gpu_model"].to_pylist()
        models = sorted({self.models[node] for node in self.node.tolist()})
        self.devices = [telemetry.device(model, cluster) for model in models]
        number = {model: k for k, model in enumerate(models)}
        self.device__u = np.array([number[self.models[node]] for node in self.node.tolist()], np.int32)
        self.profiles = PodProfiles(telemetry.profiles, self.devices)
        self.capacity__u = np.array([float(device.memory_mib) for device in self.devices], np.float64)[self.device__u]
        self.seed = seed
        self.columns: dict[str, Array] = {}
        self.readings: GpuReadings | None = None
        self._refreshes: Iterator[float] = iter(())
        self._next_refresh_s = math.inf
        self._sample = self._first = self._looks = 0
        self.begin_s = 0.0
        gpus = len(self.node)
        self._often = max(1, LOOKED_GPUS // (gpus + 100))
        self._knob = REFRESH_S if telemetry.refresh_s else EXPORTER_SAMPLES
        self._most_looks = self._knob.work.most
        self._latest = {name: np.zeros(gpus) for name in QUANTITIES} | {"pod_id": np.full(gpus, NO_POD)}
        self._room = max(1, WINDOW_ROWS // (max(gpus, 1) * len(QUANTITIES)))
        self._window = {name: np.zeros((self._room, gpus)) for name in QUANTITIES}
        self._window["pod_id"] = np.zeros((self._room, gpus), np.int64)
        self._window_ms: list[int] = []
        self._labels: DeviceLabels | None = None

    @property
    def due_s(self) -> float:
        """The next second at which a device is read or sampled."""
        return math.inf if self.readings is None else min(self._next_refresh_s, self.sample_s)

    @property
    def sample_s(self) -> float:
        """The second of the next sample: a multiple, not a running sum."""
        return self._sample * self.telemetry.every_s

    def begin(self, begin_s: float) -> None:
        """Start with idle GPUs."""
        levels = {
            name: np.zeros(len(self.node)) for name in ("util_pct__u", "power_w__u", "temperature_c__u", "energy_j__u",
                                                        "at_s__u")
        }  # fmt: skip
        devices = device_columns(self.devices) | levels | {"head__u": np.zeros(len(self.node), np.int32)}
        self.readings, self.begin_s = GpuReadings(self.device__u, devices, self.profiles.columns(), begin_s), begin_s
        self._sample = self._first = math.ceil(begin_s / self.telemetry.every_s)
        self._refreshes = self.telemetry.refreshes(begin_s, self.seed)
        self._next_refresh_s = next(self._refreshes, math.inf)

    def take(self, rows: Mapping[str, Array], until_s: float, closed: bool = False) -> None:
        """Add starts (``profile`` 0 or more) and ends (-1) of stays before ``until_s``; with ``closed`` also at it.

        Columns: ``t``, ``pod_id``, ``gpu`` and ``profile``.
        """
        assert self.readings is not None
        self._refuse(until_s)
        at, count = 0, len(rows["t"])
        if self.profiles.fresh:
            self.readings.use_profiles(self.profiles.columns())
        while True:
            due_s = self.due_s
            at = self.readings.feed(dict(rows), at, due_s)
            if at == count and not (due_s < until_s or (closed and due_s == until_s)):
                return
            self._read(due_s)

    def _refuse(self, until_s: float) -> None:
        """ScenarioError if samples and refreshes before ``until_s`` exceed their budgets."""
        every_s, gaps_s = self.telemetry.every_s, self.telemetry.refresh_s
        span_s = max(until_s, self.sample_s) - self._first * every_s
        READINGS.refuse(span_s, every_s, len(self.node), len(QUANTITIES))
        EXPORTER_SAMPLES.refuse(span_s, every_s)
        if gaps_s:
            REFRESH_S.refuse(until_s - self.begin_s, sum(gaps_s) / len(gaps_s))

    def _count_look(self) -> None:
        """Count a refresh or sample, and notice Ctrl-C from time to time."""
        self._looks += 1
        if self._looks > self._most_looks:
            self._knob.count(self._looks)
        if self._looks % self._often == 0:
            interrupts.check()

    def skip(self, until_s: float) -> None:
        """Skip readings that others replace before ``until_s``."""
        if not self.telemetry.refresh_s:
            self._sample = max(self._sample, math.ceil(until_s / self.telemetry.every_s) - 1)
            return
        while self._next_refresh_s < until_s:
            self._count_look()
            last, self._next_refresh_s = self._next_refresh_s, next(self._refreshes, math.inf)
            if self._next_refresh_s >= until_s:
                self._refreshes, self._next_refresh_s = chain([self._next_refresh_s], self._refreshes), last
                break
        self._sample = max(self._sample, math.ceil(self._next_refresh_s / self.telemetry.every_s))

    def _read(self, due_s: float) -> None:
        assert self.readings is not None
        self._count_look()
        if not self.telemetry.refresh_s or due_s == self._next_refresh_s:
            self.readings.read(due_s, self._latest)
            np.subtract(self.capacity__u, self._latest["memory_used_mib"], out=self._latest["memory_free_mib"])
            np.maximum(self._latest["memory_free_mib"], 0.0, out=self._latest["memory_free_mib"])
            self._next_refresh_s = next(self._refreshes, math.inf)
        if due_s == self.sample_s:
            self._sample += 1
            self._add_sample(round(due_s * 1000))

    def _add_sample(self, ms: int) -> None:
        if self.sink is None:
            return
        row = len(self._window_ms)
        for name, values in self._latest.items():
            self._window[name][row] = values
        self._window_ms.append(ms)
        if row + 1 == self._room:
            self.flush()

    def flush(self) -> None:
        """Pass the collected samples to the sink."""
        rows, self._window_ms = len(self._window_ms), self._window_ms
        if rows and len(self.node) and self.sink is not None:
            if self._labels is None:
                self._labels = DeviceLabels(self.node, self.index, self.names, self.models)
            ts = np.array(self._window_ms, np.int64) + self.telemetry.epoch_ms
            for name in QUANTITIES:
                self.sink(self._labels.batch(name, ts, self._window[name][:rows], self._window["pod_id"][:rows]))
        self._window_ms = []

    def by_node(self, name: str) -> Array:
        """The last readings of a quantity, mean over the GPUs of each node; 0 for a node without GPUs."""
        gpus = np.bincount(self.node, minlength=len(self.names))
        total = np.bincount(self.node, weights=self._latest[name], minlength=len(self.names))
        return total / np.maximum(gpus, 1)


class DeviceLabels:
    """The columns that identify devices, device by device in the order of the table."""

    def __init__(self, node: Array, index: Array, names: list[str], models: list[str | None]) -> None:
        devices = [
            (names[n], uuid_of(names[n], g), g, models[n]) for n, g in zip(node.tolist(), index.tolist(), strict=True)
        ]
        self.order = np.array(sorted(range(len(devices)), key=lambda u: devices[u][:3]), np.int64)
        ordered = [devices[u] for u in self.order.tolist()]
        self.columns = [pa.array([row[k] for row in ordered], kind)
                        for k, kind in enumerate((pa.string(), pa.string(), pa.int32(), pa.string()))]  # fmt: skip

    def batch(self, metric: str, ts: Array, values: Array, pod_id: Array) -> pa.RecordBatch:
        """Rows of one metric: ``values`` and the GPU's only pod (``NO_POD``: none or several), by sample and device."""
        devices, samples = len(self.order), len(ts)
        rows = devices * samples
        which = pa.array(np.repeat(np.arange(devices), samples))
        node, uuid, index, model = (column.take(which) for column in self.columns)
        pods = np.ascontiguousarray(pod_id[:, self.order].T).ravel()
        pod = pa.array(pods, pa.int64(), mask=pods == NO_POD).cast(pa.string())
        nothing = pa.nulls(rows, pa.string())
        name = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [metric]).cast(pa.string())
        readings = pa.array(np.ascontiguousarray(values[:, self.order].T).ravel())
        stamps = pa.array(np.tile(ts, devices), pa.timestamp("ms", "UTC"))
        return pa.RecordBatch.from_arrays(
            [stamps, node, uuid, index, model, nothing, pod, nothing, name, readings], schema=SCHEMA
        )


def uuid_of(node: str, index: int) -> str:
    """A UUID for a simulated device, the same for the same node and index."""
    text = hashlib.sha256(f"{node}/{index}".encode()).hexdigest()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def device_columns(devices: list[Any]) -> dict[str, Array]:
    """Devices as columns of the compiled readings: a row of numbers each, and tables by the number of pods."""
    named = [name for name in DEVICE_FIELDS if not name.endswith("_known")]
    rows = [[*(getattr(d, name) for name in named), float(bool(d.util_pct)), float(bool(d.power_w))] for d in devices]
    columns: dict[str, Array] = {"fields": np.array(rows or np.zeros((0, len(DEVICE_FIELDS))), np.float64)}
    for name in ("util_pct", "power_w"):
        width = max((len(getattr(device, name)) for device in devices), default=0)
        columns[name] = np.zeros((max(len(devices), 1), max(width, 1)))
        for row, device in enumerate(devices):
            table = getattr(device, name)
            columns[name][row] = [*table, *[table[-1]] * (width - len(table))] if table else 0.0
    return columns


def _devices(num_gpu: Array) -> tuple[Array, Array]:
    """The node of every GPU, and its number there."""
    node = np.repeat(np.arange(len(num_gpu)), num_gpu)
    first = np.cumsum(num_gpu) - num_gpu
    return node, np.arange(len(node)) - np.repeat(first, num_gpu)
