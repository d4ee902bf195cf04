"""Telemetry of an online run: stays go to the sampler, and the last samples to scorers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.engine.sampling.sample_table import SampleTable
from fastsim.engine.sampling.telemetry_sampler import NO_STAYS, Sampling
from fastsim.engine.tables import INTERVAL, REASONS

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.telemetry.telemetry import Telemetry

START = 4
"""Bit of ``closes``: nothing ends, a stay begins."""
SEEN = {"util_pct": "util_pct", "copy_pct": "copy_pct", "temperature_c": "temperature_c", "power_w": "gpu_power_w",
        "memory_used_mib": "gpu_memory_used_mib", "memory_free_mib": "gpu_memory_free_mib"}  # fmt: skip
"""Readings that scorers see, and their columns of nodes: means over a node's GPUs."""


class TelemetryHook:
    """Connects an online run with its sampler; ``seen``: scorers read samples, so the loop stops at each sample."""

    def __init__(
        self, telemetry: Telemetry, cluster: Cluster, seed: int, *, recorded: bool, seen: bool, folder: Path | None
    ) -> None:
        self.samples = SampleTable(folder) if recorded else None
        self.sampling = Sampling(telemetry, cluster, seed, None if self.samples is None else self.samples.add)
        self.seen = seen
        self.columns = {name: np.zeros(len(cluster)) for name in SEEN.values()} if seen else {}

    def arrive(self, batch: pa.RecordBatch) -> None:
        """Register the pods that arrive next."""
        if self.sampling.readings is None:
            self.sampling.begin(float(batch.column("submit_s")[0].as_py()))
        self.sampling.profiles.arrive(batch)

    @property
    def due_s(self) -> float:
        """Second at which the loop must stop for a sample; infinite if no scorer reads them."""
        return self.sampling.due_s if self.seen else np.inf

    def outcomes(self, out: Any, now_s: float) -> Any:
        """Pass outcome rows to the sampler; those of them that end a stay or a pod."""
        self.sampling.take(self._stays(out), now_s)
        return out[out["closes"] != START]

    def look(self, next_s: float) -> None:
        """Take the due sample; all earlier rows have been passed on, and no event comes before second ``next_s``."""
        if self.samples is None:
            self.sampling.skip(next_s)
        self.sampling.take(NO_STAYS, self.sampling.due_s, closed=True)
        for name, column in self.columns.items():
            column[...] = self.sampling.by_node(next(reading for reading, known in SEEN.items() if known == name))

    def close(self, now_s: float) -> None:
        """Take the samples until the end of the run, and complete the table."""
        if self.sampling.readings is not None:
            self.sampling.take(NO_STAYS, now_s, closed=True)
        self.sampling.flush()
        if self.samples is not None:
            self.samples.close()

    def drop(self) -> None:
        """Drop the table of a run that failed."""
        if self.samples is not None:
            self.samples.drop()

    def _stays(self, out: Any) -> dict[str, Any]:
        """Stays by device, in the order in which they begin and end; what still runs at the end of the run stays."""
        need = self.sampling.profiles.of(out)
        ends = (out["closes"] & INTERVAL > 0) & (out["reason"] != REASONS.index("running"))
        chosen = ((out["closes"] == START) | ends) & (out["node"] >= 0) & (out["gpus"] > 0)
        row, bit = on_devices(out["gpus"][chosen])
        out, need = out[chosen][row], need[chosen][row]
        gpu = (self.sampling.first__n[out["node"]] + bit).astype(np.int32)
        begins = out["closes"] == START
        profile = np.full(len(out), -1, np.int32)
        profile[begins] = self.sampling.profiles.numbers(need[begins], self.sampling.device__u[gpu[begins]])
        return {
            "t": np.where(begins, out["start"], out["end"]), "pod_id": np.ascontiguousarray(out["pod_id"]),
            "gpu": gpu, "profile": profile,
        }  # fmt: skip


def on_devices(bits: Any) -> tuple[Any, Any]:
    """Row and device number of every bit that is set, row by row."""
    table = np.unpackbits(np.ascontiguousarray(bits, "<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    row, bit = np.nonzero(table)
    return row, bit
