"""Nodes that come and go in rounds, in plain Python: the twin of ``fastsim_ext.rounds.node_presence``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fastsim.scenario.outages import Change


class Nodes:
    """The nodes of a run: ``away`` is the number of reasons for which each is absent at first."""

    def __init__(self, node_of_gpu: Sequence[int], away: Sequence[int], changes: Sequence[Change]) -> None:
        self.node_of_gpu, self.reasons, self.changes = node_of_gpu, list(away), changes
        self.seen_s = -math.inf

    def see(self, now_s: float) -> bool:
        """A round begins; whether a node has come or gone since the last one."""
        any_changed = False
        for change in self.changes:
            if self.seen_s < change.t_s <= now_s:
                absent = self.reasons[change.position] > 0
                self.reasons[change.position] += -1 if change.comes else 1
                any_changed |= absent != (self.reasons[change.position] > 0)
        self.seen_s = now_s
        return any_changed

    def absent(self) -> set[int]:
        """The GPUs that are not there."""
        return {gpu for gpu, node in enumerate(self.node_of_gpu) if self.reasons[node]}

    def next_s(self) -> float:
        """When the next node comes or goes."""
        return min((change.t_s for change in self.changes if change.t_s > self.seen_s), default=math.inf)

    def goes(self, gpus: Iterable[int], finish_s: float) -> bool:
        """Whether a node of these GPUs goes away in the round before this time."""
        nodes = {self.node_of_gpu[gpu] for gpu in gpus}
        return any(
            self.seen_s < change.t_s < finish_s and not change.comes and change.position in nodes
            for change in self.changes
        )
