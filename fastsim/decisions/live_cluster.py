"""The current state of a cluster: nodes, and pods that hold resources there, from files or a Kubernetes API server.

An API server is read through ``kubectl proxy``, whose address needs no password: ``http://127.0.0.1:8001``. Its objects
are listed once and then watched, so that a state has every event that had arrived. Files are read again when they
change; a state older than ``refresh_s`` is not used, nor is that of a server which lists without a watch.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.importers import snapshot_nodes
from fastsim.decisions.watched_objects import WatchedObjects
from fastsim.errors import InputError
from fastsim.foundation.http.answers import base_address
from fastsim.foundation.parquet import one_line
from fastsim.kubernetes.controllers import WrittenPods
from fastsim.kubernetes.objects import Manifest, Notices, manifests
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
from fastsim.kubernetes.snapshot import Snapshot, is_running
from fastsim.workload import Workload
from fastsim.workload.importers.kubernetes import pods_of_rows

if TYPE_CHECKING:
    from fastsim.workload.typical_pods import TypicalPods


OF_NODES = (
    "_divided", "_claimed_devices", "_plain_rows", "_offered", "_node_rows", "_places", "_surroundings", "nodes",
    "positions", "offered_rows",
)  # fmt: skip
"""Properties that follow from nodes, and from pods as `ClusterState.following` says."""
MOST_KEPT = 10
"""Most kept values an object, beyond which snapshots begin to keep anew: pods that are gone have values, too."""


class ClusterState(Snapshot):
    """The cluster at one moment, and rows of the pods that are bound to its nodes; `number` counts states."""

    number = 0

    @cached_property
    def nodes(self) -> Cluster:
        """The nodes, without the pods that run there, which are in `bound_rows`."""
        return Cluster(*snapshot_nodes(self)._replace(snapshot=None))

    def following(self, objects: Sequence[Manifest]) -> ClusterState:
        """The state with these objects.

        What follows from the nodes is taken over where they are the same ones. What pods have to say about them are
        amounts of memory, and the images of those that wait; with claims for devices nothing is taken over.
        """
        fresh = ClusterState(objects, self.name, self.memory_unit)
        fresh.number = self.number + 1
        fresh._take_over(self)
        return fresh

    def _take_over(self, earlier: ClusterState) -> None:
        """Take over what an earlier state has worked out about its nodes, if they are the same and read the same."""
        same = len(self._others) == len(earlier._others) and all(map(is_, self._others, earlier._others))
        if not same or earlier.has_claims or earlier._kept.count > MOST_KEPT * len(self.objects):
            return
        self._written = WrittenPods() if earlier._written is None else earlier._written.following()
        self._kept = earlier._kept  # values that follow from parts of pods and from the nodes
        if self._steps != earlier._steps or self._wanted_images != earlier._wanted_images:
            self._kept = KeptParts()
            return
        self._node_notices = Notices(earlier._node_notices)
        self.__dict__ |= {name: earlier.__dict__[name] for name in OF_NODES if name in earlier.__dict__}

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
    def checksum(self) -> str:
        """Which state it is: no folder keeps it, so that its content need not be known again."""
        return f"{self.name}: state {self.number}"

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
        return TypicalPods.of(pods_of_rows(self, rows_by_arrival(self.bound_rows, [])))

    @cached_property
    def pods_beyond_capacity(self) -> int:
        """Number of bound pods that do not fit on their nodes by their requests."""
        from fastsim.scenario.scenario import Scenario
        from fastsim.simulation.simulate import played

        if not self.bound_rows:
            return 0
        workload = Workload.of(pods_of_rows(self, rows_by_arrival(self.bound_rows, [])))
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
    _objects: WatchedObjects | None = field(default=None, init=False)
    _changes: int = field(default=0, init=False)
    _known_s: float | None = field(default=None, init=False)
    _lock: Any = field(default_factory=threading.Lock, init=False)

    def state(self) -> ClusterState:
        """The current state; the same object until a change is known."""
        with self._lock:
            state = self._newest()
            self._known_s = self._read_at[0] if not self.remote else self.clock()
            return state

    @property
    def age_s(self) -> float:
        """Seconds since the source was known to be as the last state says; infinite before the first state."""
        return math.inf if self._known_s is None else self.clock() - self._known_s

    def _newest(self) -> ClusterState:
        if self.remote:
            return self._watched()
        if self._state is not None and self.clock() - self._read_at[0] < self.refresh_s:
            return self._state
        stamp = self._stamp()
        if self._state is None or stamp != self._read_at[1]:
            self._replace(manifests(self.source))
        self._read_at = (self.clock(), stamp)
        return self._current

    def close(self) -> None:
        """End the connections to an API server."""
        if self._objects is not None:
            self._objects.close()

    def _watched(self) -> ClusterState:
        """The state by the answers of an API server so far."""
        if self._objects is None:
            base = base_address(self.source, "--snapshot", "http://127.0.0.1:8001")
            self._objects = WatchedObjects(base, self.refresh_s, self.timeout_s, self.clock)
        changes, objects = self._objects.update()
        if self._state is None or changes != self._changes:
            self._replace(objects)
            self._changes = changes
        return self._current

    @property
    def _current(self) -> ClusterState:
        assert self._state is not None
        return self._state

    def _replace(self, objects: Sequence[Manifest]) -> None:
        if self._state is None:
            self._state = ClusterState(objects, self.source, self.memory_unit)
        else:
            self._state = self._state.following(objects)

    @property
    def remote(self) -> bool:
        """Whether the source is an API server."""
        return self.source.startswith(("http://", "https://"))

    def _stamp(self) -> Any:
        """Paths, times and sizes of the files, to detect changes."""
        root = Path(self.source)
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        try:
            return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
        except OSError as error:
            raise InputError(self.source, one_line(error), "Kubernetes objects (YAML or JSON)") from None


def rows_by_arrival(bound: list[dict[str, Any]], waiting: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that arrive in order: bound pods at second 0, the others one by one from second 1 on."""
    from fastsim.kubernetes.pods import PodTimes

    placed = [{**row, "times": PodTimes(created=0.0)} for row in bound]
    return placed + [{**row, "times": PodTimes(created=1.0 + i)} for i, row in enumerate(waiting)]


def left_out(notices: Counter[str]) -> str:
    """Fields that are not honoured, with their counts, on one line."""
    known = Notices(notices)
    return "; ".join(f"{text} ({count:,}{known.such_as(text)})" for text, count in sorted(known.items()))
