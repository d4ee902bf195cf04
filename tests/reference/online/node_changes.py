"""Presence of nodes: their own times, maintenance and failures, as a stream of changes for the reference engine."""

from __future__ import annotations

from collections.abc import Iterator

from fastsim.cluster.cluster import Cluster
from fastsim.scenario import outages


class Presence:
    """Number of reasons for each node to be absent, and the next change.

    A failure is left out together with its repair if no pod arrives, ends or is tried again later. Once no node is
    failed and no planned change remains, there are no more failures: no event can start a pod any more. Failures begin
    at ``begin_s``, the first arrival.
    """

    def __init__(self, cluster: Cluster, given: outages.Outages, seed: int, begin_s: float) -> None:
        self.away = [int(still_to_come) for still_to_come in outages.away_at_start(cluster)]
        self._changes: Iterator[outages.Change] = outages.merged(cluster, given, seed, begin_s)
        self._planned = len(outages.planned(cluster, given))
        self._failed = 0
        self._spared: set[int] = set()

    def following(self) -> outages.Change | None:
        """The next change, or None."""
        return next(self._changes, None)

    def unnoticed(self, change: outages.Change, busy: bool) -> bool:
        """Whether a change is left out; ``busy`` if pods may start or end at some later time anyway."""
        if not change.random:
            return False
        if change.comes:
            spared = change.position in self._spared
            self._spared.discard(change.position)
            return spared
        if not busy:
            self._spared.add(change.position)
            if self._failed == self._planned == 0:
                self._changes = iter(())
        return not busy

    def happened(self, change: outages.Change) -> bool:
        """Count a change; whether the node appears or disappears by it."""
        by = -1 if change.comes else 1
        self._failed += change.random * by
        self._planned -= not change.random
        self.away[change.position] += by
        return self.away[change.position] == (0 if change.comes else 1)
