"""Profiles of pods on devices: that of the application, or one made from the request."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.engine.tables import POD
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.usage_profile import CUT, Phase, Profile
from fastsim.workload import schema as s

Array = Any
WHOLE = 1000
"""Milli-GPU of a whole device."""


class PodProfiles:
    """Profiles as a growing table of phases; pods of one application and request share a number.

    A pod without a profile uses its share of the device all the time, and its requested memory, or its share of it.
    """

    def __init__(self, profiles: Mapping[str, Profile], devices: Sequence[Device]) -> None:
        self.profiles, self.devices = profiles, devices
        self.fresh = False
        self._needs: dict[tuple[Any, ...], int] = {}
        self._number: dict[tuple[int, int], int] = {}
        self._phases: list[tuple[float, float, float, float]] = []
        self._first = [0]
        self._by_need: list[tuple[Any, ...]] = []
        self._batches: list[_Batch] = []
        self._arrived = 0

    def columns(self) -> dict[str, Array]:
        """Phases as columns of the compiled readings."""
        table = np.array(self._phases or np.zeros((0, 4)), np.float64).T
        names = ("after_s", "memory_mib", "util_pct", "power_w")
        self.fresh = False
        return {"first__p": np.array(self._first, np.int32),
                **{name: np.ascontiguousarray(row) for name, row in zip(names, table, strict=True)}}  # fmt: skip

    def needs(self, rows: pa.RecordBatch | pa.Table) -> Array:
        """The number of each pod's need: its application, share of a GPU and memory."""
        count = rows.num_rows
        columns = []
        for name in (s.WORKLOAD, s.GPU_MILLI, s.GPU_MEMORY_MIB):
            known = name in rows.schema.names
            column = rows.column(name) if known else pa.nulls(count)
            columns.append(
                pl.Series(name, pl.from_arrow(column.cast(pa.string() if name == s.WORKLOAD else pa.int64())))
            )
        frame = pl.DataFrame(columns)
        distinct = frame.unique(maintain_order=True)
        numbers = [self._needs.setdefault(row, len(self._needs)) for row in distinct.rows()]
        self._by_need = list(self._needs)
        joined = frame.join(distinct.with_columns(need=pl.Series(numbers, dtype=pl.Int32)), on=frame.columns,
                            nulls_equal=True, how="left", maintain_order="left")  # fmt: skip
        return joined["need"].to_numpy()

    def numbers(self, need: Array, device: Array) -> Array:
        """Profile numbers of pods with these needs on these devices."""
        keys = need.astype(np.int64) * len(self.devices) + device
        distinct, inverse = np.unique(keys, return_inverse=True)
        number = [self._numbered(*divmod(int(key), len(self.devices))) for key in distinct]
        return np.array(number, np.int32)[inverse] if number else np.zeros(0, np.int32)

    def _numbered(self, need: int, device: int) -> int:
        if (need, device) not in self._number:
            after_s = 0.0
            application, milli, memory_mib = self._by_need[need]
            for phase in self.profile(application, milli, memory_mib, self.devices[device]).phases:
                self._phases.append((after_s, phase.memory_mib, phase.util_pct, phase.power_w))
                after_s += phase.duration_s
            self._first.append(len(self._phases))
            self._number[need, device] = len(self._first) - 2
            self.fresh = True
        return self._number[need, device]

    def profile(self, application: str | None, milli: int | None, memory_mib: int | None, device: Device) -> Profile:
        """The profile of one pod on one device."""
        if application is not None and application in self.profiles:
            return self.profiles[application]
        name, cut, memory_text = (application or "").rpartition(CUT)
        if cut and name in self.profiles:
            return self.profiles[name].cut(float(memory_text))
        share = min((WHOLE if milli is None else milli) / WHOLE, 1.0)
        memory = share * device.memory_mib if memory_mib is None else float(memory_mib)
        return Profile("share", (Phase(math.inf, memory, 100 * share),))

    def arrive(self, batch: pa.RecordBatch) -> None:
        """Add the needs of the next arrivals, which are kept until the last of the batch has left."""
        self._batches.append(_Batch(self._arrived, self.needs(batch)))
        self._arrived += batch.num_rows

    def of(self, out: Array) -> Array:
        """Needs of the pods of these outcome rows, dropping those of pods that end."""
        which = np.searchsorted([batch.first for batch in self._batches], out["seq"], side="right") - 1
        need = np.zeros(len(out), np.int32)
        ended = out["closes"] & POD > 0
        for number in np.unique(which).tolist():
            batch, rows = self._batches[number], which == number
            need[rows] = batch.need[out["seq"][rows] - batch.first]
            batch.left -= int(np.count_nonzero(ended & rows))
        self._batches = [batch for batch in self._batches if batch.left]
        return need


class _Batch:
    """Needs of consecutive pods; `left` of them are still in the system."""

    def __init__(self, first: int, need: Array) -> None:
        self.first, self.need, self.left = first, need, len(need)
