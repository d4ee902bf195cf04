"""Nodes that come and go in rounds: what decides their changes, and the feed of a loop with these changes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.node_metrics import node_of_gpu
from fastsim.foundation.limits.knobs import FAILURES
from fastsim.scenario.outages import NO_OUTAGES, Change, Outages, away_at_start, merged, taken
from fastsim_ext.rounds.node_presence import NodePresence

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

KINDS = (np.float64, np.int32, np.int32)
"""Types of the columns of changes: second, position of the node, whether it comes."""
AT_ONCE = 1024
"""Fewest changes handed over at a time; any number gives the same run."""


class NodeOutages(NamedTuple):
    """The nodes of a run, some of which come and go, and the seed of random failures."""

    cluster: Cluster
    outages: Outages
    seed: int

    @classmethod
    def of(cls, cluster: Cluster, outages: Outages, seed: int) -> NodeOutages | None:
        """The outages of a run; None if all of its nodes are there all the time."""
        lasting = all(cluster.nodes[name].null_count == len(cluster) for name in ("add_s", "remove_s"))
        return None if lasting and outages == NO_OUTAGES else cls(cluster, outages, seed)

    def refuse_too_many(self, span_s: float) -> None:
        """ScenarioError if so many seconds, in which no job can have ended yet, have too many failures."""
        if self.outages.mtbf_s is not None and self.outages.mttr_s is not None:
            FAILURES.refuse(span_s, len(self.cluster), self.outages.mtbf_s, self.outages.mttr_s)

    def checksum(self) -> str:
        """What decides the changes, for comparison with a checkpoint."""
        return hashlib.sha256(f"{self.cluster.checksum} {self.outages} {self.seed}".encode()).hexdigest()


class NodeChanges:
    """The changes of one run's nodes, with which its loop is fed; random failures begin at ``begin_s``."""

    def __init__(self, nodes: NodeOutages, gpu_models: tuple[str, ...], begin_s: float) -> None:
        self.begin_s = begin_s
        away = np.array(away_at_start(nodes.cluster), np.int32)
        self.presence = NodePresence(node_of_gpu(nodes.cluster, gpu_models), away, np.full(len(away), np.inf))
        self._changes: Iterator[Change] = merged(nodes.cluster, nodes.outages, nodes.seed, begin_s)
        self._fed = 0
        self._columns: list[npt.NDArray[Any]] = [np.zeros(0, kind) for kind in KINDS]
        self._hand_over(False)

    def feed(self) -> None:
        """Hand over the next changes, behind those that have not happened."""
        left = self.presence.left
        count = max(AT_ONCE, left)  # so that many changes of one round are not copied again and again
        following = taken(self._changes, count)
        self._fed += len(following)
        FAILURES.count(self._fed)
        rows = [(one.t_s, one.position, one.comes) for one in following]
        new = (np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), KINDS, strict=False))
        rest = [column[len(column) - left :] for column in self._columns]
        self._columns = [np.concatenate(pair) for pair in zip(rest, new, strict=True)] if rows else rest
        self._hand_over(len(following) < count)

    def _hand_over(self, closed: bool) -> None:
        t, node, comes = self._columns
        self.presence.feed(t, node, comes, closed)

    def go_on(self, seen_s: float, round_s: float) -> None:
        """See again all that was seen when the round at ``seen_s`` began."""
        while math.isfinite(seen_s) and self.presence.begin_round(seen_s, seen_s + round_s):
            self.feed()
