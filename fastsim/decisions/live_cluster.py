"""The current state of a cluster: nodes, and pods that hold resources there, from files or a Kubernetes API server.

An API server is read through ``kubectl proxy``, whose address needs no password: ``http://127.0.0.1:8001``. Files are
read again when they change. A state older than ``refresh_s`` is not used.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.cluster.importers import cluster_of
from fastsim.errors import InputError
from fastsim.foundation.http.answers import answer_of, base_address
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.kubernetes.objects import Manifest, Notices, manifests, manifests_in
from fastsim.kubernetes.snapshot import Snapshot, is_running
from fastsim.workload.importers.kubernetes import workload_of_rows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.typical_pods import TypicalPods

PATHS = ("/api/v1/nodes", "/api/v1/pods")
"""Paths to read from an API server."""
DEVICE_PATHS = tuple(
    f"/apis/resource.k8s.io/v1/{name}"
    for name in ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")
)
"""Paths to read from an API server that has them."""
ABSENT = ("403", "404")
"""Beginnings of answers of a server that lacks a path, or does not show it."""


class ClusterState(Snapshot):
    """The cluster at one moment, and rows of the pods that are bound to its nodes; `number` counts states."""

    number = 0

    @cached_property
    def nodes(self) -> Cluster:
        """The nodes, without the pods that run there, which are in `bound_rows`."""
        return replace(cluster_of(self), snapshot=None)

    def with_claims_of(self, pod: Manifest) -> ClusterState:
        """This state, or for a pod with claims the same with this pod as the only one that waits."""
        if not self.asks_for_devices(pod):
            return self
        others = [item for item in self.objects if item.kind != "Pod" or is_running(item)]
        fresh = ClusterState([*others, pod], self.name, self.memory_unit)
        fresh.number, fresh.momentary = self.number, True
        return fresh

    @cached_property
    def positions(self) -> dict[str, int]:
        """Positions of the nodes by name."""
        return {name: position for position, name in enumerate(self.nodes.nodes["name"].to_pylist())}

    @cached_property
    def offered_rows(self) -> list[dict[str, Any]]:
        """Rows of the nodes as pods see them, by position."""
        columns = ["name", "labels", "cpu_milli", "memory_mib", "num_gpu", "gpu_memory_mib", "extra_resources"]
        rows: list[dict[str, Any]] = self.nodes.offered.select(columns).to_pylist()
        return rows

    @cached_property
    def bound_rows(self) -> list[dict[str, Any]]:
        """Rows of the pods that hold resources on a node of the cluster."""
        holders = [item for item in self.of_kind("Pod") if is_running(item)]
        bound = [item for item in holders if item.part("spec").get("nodeName") in self.positions]
        from fastsim.kubernetes.arrival_order import running_key

        return sorted(self.rows_of(bound), key=running_key)

    @cached_property
    def typical(self) -> TypicalPods | None:
        """Typical pods, for fragmentation: the bound pods; None without any."""
        from fastsim.workload.typical_pods import TypicalPods

        if not self.bound_rows:
            return None
        return TypicalPods.of(workload_of_rows(self, rows_by_arrival(self.bound_rows, [])))

    @cached_property
    def pods_beyond_capacity(self) -> int:
        """Number of bound pods that do not fit on their nodes by their requests."""
        from fastsim.scenario.scenario import Scenario
        from fastsim.simulation.simulate import played

        if not self.bound_rows:
            return 0
        workload = workload_of_rows(self, rows_by_arrival(self.bound_rows, []))
        result, _ = played(Scenario(cluster=self.nodes, workload=workload, policy="best_fit", record="summary"))
        return int(result.summary["pods_unplaced"][0])

    @property
    def description(self) -> str:
        """The state in one line."""
        extra = f", {self.pods_beyond_capacity:,} more than fit" if self.pods_beyond_capacity else ""
        return f"{len(self.positions):,} nodes with {len(self.bound_rows):,} pods{extra}"


@dataclass
class LiveSnapshot:
    """States of a cluster, from files and folders or from the address of an API server."""

    source: str
    refresh_s: float = 1.0
    timeout_s: float = 5.0
    memory_unit: str = "GiB"
    clock: Callable[[], float] = time.monotonic
    _state: ClusterState | None = field(default=None, init=False)
    _read_at: tuple[float, Any] = field(default=(0.0, None), init=False)
    _lock: Any = field(default_factory=threading.Lock, init=False)

    def state(self) -> ClusterState:
        """The current state; the same object until a change is known."""
        with self._lock:
            if self._state is not None and self.clock() - self._read_at[0] < self.refresh_s:
                return self._state
            stamp = self._stamp()
            if self._state is None or stamp is None or stamp != self._read_at[1]:
                number = 0 if self._state is None else self._state.number + 1
                self._state = ClusterState(self._objects(), self.source, self.memory_unit)
                self._state.number = number
            self._read_at = (self.clock(), stamp)
            return self._state

    @property
    def remote(self) -> bool:
        """Whether the source is an API server."""
        return self.source.startswith(("http://", "https://"))

    def _stamp(self) -> Any:
        """Paths, times and sizes of the files, to detect changes; None for a server."""
        if self.remote:
            return None
        root = Path(self.source)
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        try:
            return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
        except OSError as error:
            raise InputError(self.source, one_line(error), "Kubernetes objects (YAML or JSON)") from None

    def _objects(self) -> list[Manifest]:
        if not self.remote:
            return manifests(self.source)
        base = base_address(self.source, "--snapshot", "http://127.0.0.1:8001")
        objects: list[Manifest] = []
        for path in (*PATHS, *DEVICE_PATHS):
            try:
                body = answer_of(f"{base}{path}", "a Kubernetes API", timeout_s=self.timeout_s)
            except InputError as error:
                if path in DEVICE_PATHS and str(error.found).startswith(ABSENT):
                    continue
                raise
            try:
                document = json_value(body)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{base}{path}", one_line(error), "JSON") from None
            objects += manifests_in(f"{base}{path}", document)
        return objects


def rows_by_arrival(bound: list[dict[str, Any]], waiting: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that arrive in order: bound pods at second 0, the others one by one from second 1 on."""
    from fastsim.kubernetes.pods import PodTimes

    placed = [{**row, "times": PodTimes(created=0.0)} for row in bound]
    return placed + [{**row, "times": PodTimes(created=1.0 + i)} for i, row in enumerate(waiting)]


def left_out(notices: Counter[str]) -> str:
    """Fields that are not honoured, with their counts, on one line."""
    known = Notices(notices)
    return "; ".join(f"{text} ({count:,}{known.such_as(text)})" for text, count in sorted(known.items()))
