"""A cluster as it is now: nodes, and the pods that hold something there, from files or from a Kubernetes API server.

An API server is asked through ``kubectl proxy``, whose address needs no password: ``http://127.0.0.1:8001``. Files are
read again when they change. What is older than ``refresh_s`` is not used.
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
from fastsim.foundation.http import answer_of, base_address
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.kubernetes.objects import Manifest, manifests, manifests_in
from fastsim.kubernetes.snapshot import Snapshot, holds_a_place
from fastsim.workload.importers.kubernetes import workload_of_rows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.typical_pods import TypicalPods

PATHS = ("/api/v1/nodes", "/api/v1/pods")
"""What an API server is asked for."""


class State(Snapshot):
    """One moment: the cluster, and rows of the pods that are bound to its nodes; `number` tells moments apart."""

    number = 0

    @cached_property
    def nodes(self) -> Cluster:
        """The nodes, without what runs there: rows of pods are told apart here."""
        return replace(cluster_of(self), snapshot=None)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Positions of the nodes by name."""
        return {name: position for position, name in enumerate(self.nodes.nodes["name"].to_pylist())}

    @cached_property
    def bound_rows(self) -> list[dict[str, Any]]:
        """Rows of the pods that hold something on a node that is there."""
        held = [item for item in self.of_kind("Pod") if holds_a_place(item)]
        bound = [item for item in held if item.part("spec").get("nodeName") in self.positions]
        from fastsim.kubernetes.arrival_order import age

        return sorted(self.rows_of(bound), key=age)

    @cached_property
    def typical(self) -> TypicalPods | None:
        """What fragmentation is measured with: the pods that are there, if there are any."""
        from fastsim.workload.typical_pods import TypicalPods

        if not self.bound_rows:
            return None
        return TypicalPods.of(workload_of_rows(self, rows_by_arrival(self.bound_rows, [])))

    @cached_property
    def too_much(self) -> int:
        """Bound pods that do not fit where they are, as far as it is seen here: nothing is known of what they hold."""
        from fastsim.scenario.scenario import Scenario
        from fastsim.simulation.simulate import played

        if not self.bound_rows:
            return 0
        workload = workload_of_rows(self, rows_by_arrival(self.bound_rows, []))
        result, _ = played(Scenario(cluster=self.nodes, workload=workload, policy="best_fit", record="summary"))
        return int(result.summary["pods_unplaced"][0])

    @property
    def told(self) -> str:
        """The moment in one line."""
        extra = f", {self.too_much:,} more than fit" if self.too_much else ""
        return f"{len(self.positions):,} nodes with {len(self.bound_rows):,} pods{extra}"


@dataclass
class LiveSnapshot:
    """Moments of a cluster, from files and folders or from the address of an API server."""

    source: str
    refresh_s: float = 1.0
    timeout_s: float = 5.0
    memory_unit: str = "GiB"
    clock: Callable[[], float] = time.monotonic
    _state: State | None = field(default=None, init=False)
    _seen: tuple[float, Any] = field(default=(0.0, None), init=False)
    _lock: Any = field(default_factory=threading.Lock, init=False)

    def state(self) -> State:
        """The cluster now; the same object as long as nothing is known to have changed."""
        with self._lock:
            if self._state is not None and self.clock() - self._seen[0] < self.refresh_s:
                return self._state
            stamp = self._stamp()
            if self._state is None or stamp is None or stamp != self._seen[1]:
                number = 0 if self._state is None else self._state.number + 1
                self._state = State(self._objects(), self.source, self.memory_unit)
                self._state.number = number
            self._seen = (self.clock(), stamp)
            return self._state

    @property
    def remote(self) -> bool:
        """Whether an API server is asked."""
        return self.source.startswith(("http://", "https://"))

    def _stamp(self) -> Any:
        """What changes with the files; None for a server, of which nothing is known before it is asked."""
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
        found: list[Manifest] = []
        for path in PATHS:
            body = answer_of(f"{base}{path}", "a Kubernetes API", timeout_s=self.timeout_s)
            try:
                told = json_value(body)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{base}{path}", one_line(error), "JSON") from None
            found += manifests_in(f"{base}{path}", told)
        return found


def rows_by_arrival(bound: list[dict[str, Any]], asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The bound pods at second 0, the others one after the other from second 1 on."""
    from fastsim.kubernetes.pods import PodTimes

    placed = [{**row, "times": PodTimes(created=0.0)} for row in bound]
    return placed + [{**row, "times": PodTimes(created=1.0 + i)} for i, row in enumerate(asked)]


def left_out(notices: Counter[str]) -> str:
    """What is not honoured, on one line."""
    return "; ".join(f"{text} ({count:,})" for text, count in sorted(notices.items()))
