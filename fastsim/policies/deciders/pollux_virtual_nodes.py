"""The cluster as Pollux sees it, nodes of one size and no GPU models; and the way back to real nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.plan import AdaptiveSetting, Place
from fastsim.policies.deciders.sia_decider import node_groups

Counts = npt.NDArray[np.int8]

MOST_GPUS = 4
"""GPUs of a virtual node, if real ones can be divided so."""
PREFERENCE = ("dgx-ext", "azure", "quad", "rtx", "aws")
"""GPU models that a job with as many GPUs of two models keeps, in this order; others follow by name."""


@dataclass(frozen=True)
class VirtualNodes:
    """Nodes of equal size into which all real ones are divided: group after group, node after node."""

    setting: AdaptiveSetting

    @cached_property
    def gpus(self) -> int:
        """GPUs of each of them: as many as divide every real node, four at most."""
        return math.gcd(MOST_GPUS, *chain.from_iterable(group.gpus__n for group in self.setting.groups))

    @cached_property
    def owner__n(self) -> tuple[tuple[int, int], ...]:
        """For each of them its group and its real node within the group."""
        return tuple(
            (g, node)
            for g, group in enumerate(self.setting.groups)
            for node, gpus in enumerate(group.gpus__n)
            for _ in range(gpus // self.gpus)
        )

    @cached_property
    def most_replicas(self) -> int:
        """GPUs that a job may have on whatever model it ends up: as many as the scarcest one has on measured nodes."""
        return min(min(group.nodes, group.max_nodes) * group.gpus_per_node for group in node_groups(self.setting))

    def __len__(self) -> int:
        return len(self.owner__n)

    def one_model(self, row__n: Counts, models: Mapping[str, object], preferred: bool = True) -> Counts:
        """The GPUs that a job keeps: those of the model it has most of, among those it can run on.

        Of two models with as many GPUs it is the preferred one, or the first one.
        """
        groups = self.setting.groups
        count: dict[int, int] = {}
        for (group, _), gpus in zip(self.owner__n, row__n.tolist(), strict=True):
            if gpus and groups[group].gpu_model in models:
                count[group] = count.get(group, 0) + gpus
        best = sorted(count, key=lambda group: -count[group])[:2]
        if preferred and len(best) == 2 and count[best[0]] == count[best[1]]:
            best.sort(key=lambda group: _preference(groups[group].gpu_model))
        on_best = [best[:1] == [group] for group, _ in self.owner__n]
        return np.where(on_best, row__n, 0).astype(np.int8)

    def place(self, row__n: Counts) -> Place:
        """The nodes of a job that has GPUs of one model."""
        owners = [owner for owner, gpus in zip(self.owner__n, row__n.tolist(), strict=True) for _ in range(gpus)]
        return Place(owners[0][0], tuple(node for _, node in owners))

    def whole(self, rows: Sequence[Counts], asked: Sequence[int]) -> list[Counts]:
        """All requested GPUs of jobs on the model they keep, or none: large jobs first, emptiest nodes first.

        Jobs that request 0 GPUs keep what they have.
        """
        counts = [np.zeros_like(row) if wanted else row for row, wanted in zip(rows, asked, strict=True)]
        free = np.full(len(self), self.gpus) - np.sum(counts, axis=0)
        group__n = np.array([group for group, _ in self.owner__n])
        for job in sorted(range(len(rows)), key=lambda job: -asked[job]):
            here = group__n == group__n[int(np.argmax(rows[job]))]
            if not asked[job] or not rows[job].any() or free[here].sum() < asked[job]:
                continue
            while (left := asked[job] - int(counts[job].sum())) > 0:
                node = int(np.argmax(np.where(here, free, -1)))
                taken = min(left, int(free[node]))
                counts[job][node] += taken
                free[node] -= taken
        return counts


def _preference(model: str) -> tuple[int, str]:
    return (PREFERENCE.index(model) if model in PREFERENCE else len(PREFERENCE)), model
