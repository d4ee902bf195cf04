"""How long a step of an application really takes on one GPU model, by where its GPUs stand.

A placement that was measured is interpolated in the batch size. Any other one is interpolated in nodes, GPUs and batch
size at once, between the averages of measured placements and the points measured at scale. The triangulation behind
that is SciPy's: points lie on a grid, so which of many equally good triangulations it is depends on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError

Floats = npt.NDArray[np.float64]
Placement = tuple[int, ...]
"""GPUs on each node, in the order of the nodes around the ring that gradients travel."""

MOST_NODES = 16
"""More nodes than this take as long as this many."""
MICRO_BATCHES = 48
"""Micro-batches of a pipeline in one step."""


class StepRow(NamedTuple):
    """One measurement: placement as digits (none: only its size is known), samples a GPU takes at once, seconds."""

    placement: str | None
    num_nodes: int
    num_gpu: int
    atomic: float
    step_s: float
    sync_s: float


class StepSeconds(NamedTuple):
    """Seconds of a step that ends in an update, and the part of them that gradients take."""

    step_s: float
    sync_s: float

    @property
    def turn_s(self) -> float:
        """Seconds of a turn without an update."""
        return self.step_s - self.sync_s


class StepTimes:
    """Measured times of one application on one GPU model.

    A GPU takes ``low`` to ``high`` samples at once. With ``stages`` above 1 a job is made of pipelines of so many GPUs.
    """

    def __init__(
        self, name: str, rows: Iterable[StepRow], low: int | None = None, high: int | None = None, stages: int = 1
    ) -> None:
        self.name, self.stages, self.rows = name, stages, tuple(rows)
        for number, row in enumerate(self.rows, 1):
            _check(f"{name}: measurement {number}", row)
        self._exact = _by_placement(self.rows)
        if not self._exact:
            raise InputError(name, "no measured placement", "one or more")
        measured = [int(row.atomic) for row in self.rows if row.placement is not None]
        self.low = min(measured) if low is None else low
        self.high = max(measured) if high is None else high
        self._known: dict[tuple[Placement, int], StepSeconds] = {}
        self._most: dict[Placement, int] = {}

    @cached_property
    def max_nodes(self) -> int:
        """Most nodes that were measured."""
        return max(row.num_nodes for row in self.rows)

    @cached_property
    def one_gpu_rate(self) -> float:
        """Samples/s of the largest batch on one GPU; longest step and largest batch need not be of one measurement."""
        alone = [row for row in self.rows if row.placement is not None and row.num_gpu == 1]
        if not alone:
            raise InputError(self.name, "no measurement on one GPU", "one or more")
        return max(row.atomic for row in alone) / max(row.step_s for row in alone)

    def seconds(self, placement: Sequence[int], atomic: int) -> StepSeconds:
        """Seconds of a step with so many samples on each GPU; InputError outside of what was measured."""
        key = canonical(placement), atomic
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._found(*key)
        return known

    def largest(self, placement: Sequence[int]) -> int:
        """Most samples that a GPU was seen to take at once in this placement, or in one as large."""
        ring = canonical(placement)
        known = self._most.get(ring)
        if known is None:
            known = self._most[ring] = self._largest(ring)
        return known

    def _largest(self, ring: Placement) -> int:
        if ring in self._exact:
            return int(self._exact[ring][0, -1])
        nodes, gpus = len(ring), sum(ring)
        scale = [r.atomic for r in self.rows if r.placement is None and r.num_nodes >= nodes and r.num_gpu >= gpus]
        if not scale:
            raise InputError(f"{self.name}: {_text(ring)}", "nothing measured at this scale", "fewer nodes or GPUs")
        return int(max(scale))

    def largest_on(self, num_gpu: int) -> int | None:
        """Most samples that a GPU was seen to take at once in any measured placement of so many GPUs."""
        return self._largest_on.get(num_gpu)

    @cached_property
    def _largest_on(self) -> dict[int, int]:
        largest: dict[int, int] = {}
        for ring, columns in self._exact.items():
            largest[sum(ring)] = max(largest.get(sum(ring), 0), int(columns[0, -1]))
        return largest

    def _found(self, ring: Placement, atomic: int) -> StepSeconds:
        where = f"{self.name}: {_text(ring)} GPUs, {atomic} samples each"
        if self.stages > 1:
            return self._pipelined(where, ring, atomic)
        if ring in self._exact:
            batches, step_s, sync_s = self._exact[ring]
            if not batches[0] <= atomic <= batches[-1]:
                raise InputError(where, f"measured {batches[0]:g} to {batches[-1]:g}", "a batch size in between")
            return StepSeconds(float(np.interp(atomic, batches, step_s)), float(np.interp(atomic, batches, sync_s)))
        step_s, sync_s = self._interpolator(min(len(ring), MOST_NODES), sum(ring), atomic).ravel().tolist()
        if not step_s > 0:  # NaN outside
            raise InputError(where, "nothing measured around it", "a smaller batch, fewer nodes or GPUs")
        return StepSeconds(step_s, sync_s)

    def _pipelined(self, where: str, ring: Placement, atomic: int) -> StepSeconds:
        """Seconds of a pipeline's arithmetic and of its network; a backward pass takes two forward passes."""
        micro = atomic // MICRO_BATCHES
        columns = self._exact.get(ring)
        known = {batch: times for batch, *times in columns.T.tolist()} if columns is not None else {}
        if micro not in known:
            raise InputError(where, f"not measured with {micro} samples a micro-batch", "a measured placement")
        forward_s, network_s = known[micro]
        return StepSeconds(3 * ((self.stages - 1) * forward_s + MICRO_BATCHES * forward_s), network_s)

    @cached_property
    def _interpolator(self) -> Any:
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError

        groups: dict[tuple[float, ...], list[tuple[float, float]]] = {}
        for row in self.rows:
            if row.placement is not None:
                groups.setdefault(row[1:4], []).append(row[4:])
        points = [(key, np.mean(groups[key], axis=0)) for key in sorted(groups)]
        points += [(row[1:4], np.array(row[4:])) for row in self.rows if row.placement is None]
        try:
            interpolator = LinearNDInterpolator(*(np.array(column, np.float64) for column in zip(*points, strict=True)))
        except QhullError:  # one node, or one number of GPUs: nothing lies between
            return lambda *_: np.full(2, np.nan)
        with _blas().limit(limits=1):
            interpolator(*points[0][0])
        return interpolator


@cache
def _blas() -> Any:
    """The linear algebra behind interpolation.

    The first interpolation inverts a matrix of three rows for each of a thousand simplices, and OpenBLAS divides even
    these among threads: where other processes have the cores, every division waits for one of them.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def canonical(placement: Sequence[int]) -> Placement:
    """The same ring of nodes, begun where it reads smallest; nodes without GPUs are left out."""
    ring = tuple(gpus for gpus in placement if gpus)
    if not ring or min(ring) < 0:
        raise InputError("placement", tuple(placement), "GPUs on one node or more")
    return min(ring[start:] + ring[:start] for start in range(len(ring)))


def placement_of(node__g: Sequence[int], most_nodes: int) -> Placement:
    """GPUs of each node, of a list of their nodes; more nodes than ``most_nodes`` count as so many, evenly filled."""
    ring = tuple(len(list(gpus)) for _, gpus in groupby(node__g))
    if len(ring) <= most_nodes:
        return ring
    each = -(-len(node__g) // most_nodes)
    return packed(len(node__g), each)


def packed(num_gpu: int, gpus_per_node: int) -> Placement:
    """So many GPUs on as few nodes as possible; the last one may have fewer."""
    whole, rest = divmod(num_gpu, gpus_per_node)
    return (gpus_per_node,) * whole + ((rest,) if rest else ())


def _by_placement(rows: tuple[StepRow, ...]) -> dict[Placement, Floats]:
    """Batch sizes in rising order, step and network seconds, for each measured placement."""
    times: dict[Placement, list[tuple[float, ...]]] = {}
    for row in rows:
        if row.placement is not None:
            times.setdefault(tuple(map(int, row.placement)), []).append(row[3:])
    return {ring: np.array(sorted(columns)).T.copy() for ring, columns in times.items()}


def _check(where: str, row: StepRow) -> None:
    if row.placement is not None:
        if not row.placement.isdigit() or "0" in row.placement:
            raise InputError(where, repr(row.placement), "a placement in digits of 1 to 9, the GPUs of each node")
        size = len(row.placement), sum(map(int, row.placement))
        if size != row[1:3]:
            raise InputError(where, f"{row.num_nodes} nodes, {row.num_gpu} GPUs", f"{size[0]} and {size[1]}")
    if not (1 <= row.num_nodes <= row.num_gpu and 0 < row.atomic < np.inf):
        raise InputError(where, row[1:4], "nodes, as many GPUs or more, and samples")
    if not (0 < row.step_s < np.inf and 0 <= row.sync_s < np.inf):
        raise InputError(where, f"{row.step_s} and {row.sync_s} s", "seconds above 0, and 0 or more of them to sync")


def _text(ring: Placement) -> str:
    return "-".join(map(str, ring))
