"""A run whose pods can be moved and moved back, with the engine's own decisions about their nodes.

Each pod has two forms: bound to a node, and as if it waited. A closed node accepts no pod and still counts as a domain
of rules of spread, as a cordoned node of Kubernetes does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastsim.engine.driving.drive import Stop
from fastsim.engine.online.arrivals import Arrivals
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.run import OnlineRun
from fastsim.engine.tables import OUTCOME
from fastsim.foundation import interrupts
from fastsim_ext.select.scan import Selector

if TYPE_CHECKING:
    from fastsim.simulation.engines.pods import Prepared

MOST_EVENTS = 1 << 40
"""Events of one step of the loop, which ends before."""


class HeldPlace(NamedTuple):
    """Position of a node, and devices as bits (0: those that the policy picks)."""

    node: int
    gpus: int


class Relocation(OnlineRun):
    """The first half of a workload's rows, each bound to a node; row ``count + i`` is pod ``i`` as if it waited."""

    def __init__(self, inputs: Prepared) -> None:
        options = OnlineOptions(record="none")
        super().__init__(inputs.cluster, inputs.workload, inputs.plan, inputs.typical, options)
        table = pa.Table.from_batches(list(inputs.workload.batches())).combine_chunks().to_batches()[0]
        self.count, self.forms = table.num_rows // 2, self.number(table)
        self._members = None if self.rule_columns is None else self.rule_columns._members(table)
        self._max_pods: Any = self.columns["max_pods"].copy()
        self._slots, self._vacant, self._used = [-1] * self.count, list[int](), 0
        self.place: list[HeldPlace | None] = [None] * self.count
        rows = [(i, HeldPlace(int(self.forms.node[i]), int(self.forms.gpus[i]))) for i in range(self.count)]
        self.unbound = [] if self.put(rows) else [i for i in range(self.count) if self.place[i] is None]
        self.origin = list(self.place)

    def _selector(self, terms: dict[str, Any]) -> Selector:
        """The plain selector, because nodes are closed and opened between decisions."""
        return Selector(self.nodes, self.work, terms, 0, self.scorers)

    def _loop_options(self) -> dict[str, Any]:
        # Checks of every event compare slots for pods with those of open nodes.
        return super()._loop_options() | {"starts_recorded": True, "checked": False}

    def close(self, nodes: Iterable[int]) -> None:
        """Let these nodes accept no pod."""
        self.columns["max_pods"][list(nodes)] = 0

    def open(self, nodes: Iterable[int]) -> None:
        """Let these nodes accept pods again."""
        where = list(nodes)
        self.columns["max_pods"][where] = self._max_pods[where]

    def power_mw(self) -> Any:
        """Milliwatts that each node draws now."""
        return self.columns["cpu_mw"] + self.columns["gpu_mw"]

    def take(self, pods: Iterable[int]) -> None:
        """Take pods off their nodes."""
        for pod in pods:
            self.online.discard(self._slots[pod])
            self._vacant.append(self._slots[pod])
            self._slots[pod], self.place[pod] = -1, None

    def put(self, places: Sequence[tuple[int, HeldPlace]]) -> bool:
        """Bind pods to places on open nodes, whatever the rules of pods say; whether all of them have room."""
        pods = [pod for pod, _ in places]
        node = np.array([place.node for _, place in places], np.int32)
        gpus = np.array([place.gpus for _, place in places], np.uint64)
        return self._feed(pods, np.array(pods, np.int64), node, gpus)

    def choose(self, pods: Sequence[int]) -> bool:
        """Let the engine place pods one after the other; whether all of them have found a place."""
        return self._feed(pods, np.array(pods, np.int64) + self.count, None, None)

    def _feed(self, pods: Sequence[int], rows: Any, node: Any, gpus: Any) -> bool:
        if not pods:
            return True
        forms, first = self.forms, self.online.arrived
        columns = (forms.pod_id, forms.cls, forms.submit_s, forms.duration_s, forms.priority, forms.tenant)
        now = Arrivals(*(np.ascontiguousarray(column[rows]) for column in columns))._replace(node=node, gpus=gpus)
        now.submit_s[:] = 0.0
        if self._members is not None and self.queue_loop is not None:
            tenant, group, stopped, stops, est = (np.ascontiguousarray(column[rows]) for column in self._members)
            job, gang = np.zeros(len(rows), np.int64), np.ones(len(rows), np.int32)
            after = np.zeros(len(rows), np.uint8)
            self.queue_loop.feed_members(tenant, group, stopped, stops, est, job, gang, after, None)
        self.online.feed(*now, False)
        while self.online.advance(MOST_EVENTS) == Stop.WANT_NODE_CHANGES:
            assert self.rule_columns is not None and self.queue_loop is not None
            self.rule_columns.feed_changes(self.queue_loop)
        interrupts.check()
        for row in np.frombuffer(self.work.drain(), OUTCOME)[["seq", "node", "gpus"]].tolist():
            self._note(pods[row[0] - first], row[1], row[2])
        return all(self.place[pod] is not None for pod in pods)

    def _note(self, pod: int, node: int, gpus: int) -> None:
        """Note a decision; slots are numbered as the table of pods does, the last that was left first."""
        slot = self._vacant.pop() if self._vacant else self._used
        self._used = max(self._used, slot + 1)
        if node < 0:
            self._vacant.append(slot)
        else:
            self._slots[pod], self.place[pod] = slot, HeldPlace(node, gpus)
