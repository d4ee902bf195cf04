"""The interface between rounds of shares and policies: the view of the jobs, the plan, and the allocation.

A policy answers once with a :class:`SharePlan`, whose :class:`ShareAllocator` is called whenever the set of jobs has
changed. From a :class:`RoundView` it computes an :class:`Allocation`: the share of the time that each job, or pair of
jobs that share their GPUs, should spend on each GPU model. The engine turns shares into rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.estimate_checks import checked_pair_rates

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.performance.oracle import Oracle

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ALONE = -1
"""Second job of a row that is one job."""
VISITS = ("fastest", "shuffled")
"""Order in which a round fills the GPU models: fastest first, or drawn anew every round."""
EXCESS = 1e-6
"""Largest excess of shares and their sums over their bounds, relative to the bound. HiGHS allows 1e-7 for each
constraint. Measured were packed shares and water filling on 18 GPUs, whose sums are at most 1.2e-8 too large."""


@dataclass(frozen=True)
class RoundView:
    """The active jobs in order of their ids, read-only. Row ``j`` of every column is the same job.

    Rates are steps/s of the whole gang; ``kind`` is the job's position in ``setting.oracle.kinds``.
    """

    setting: Setting
    now_s: float
    job_id: Ints
    kind: Ints
    num_gpu: Ints
    weight: Floats
    """Importance; 1 is usual."""
    submit_s: Floats
    steps_left: Floats
    deadline_s: Floats
    """Absolute, seconds; infinite without one."""
    price__g: Floats
    """Price of one GPU, $/h; 0 without prices."""
    tenant: tuple[str, ...] = ()
    """Entity of each job; empty without any."""
    partner_rates: PairRates | None = None
    """Estimates of the rates of pairs; None if the true ones are known."""

    def __len__(self) -> int:
        return len(self.job_id)

    @property
    def rate__jg(self) -> Floats:
        """Rate of each job alone on each model, steps/s."""
        return self.setting.oracle.alone__kg[self.kind]

    @property
    def reference__j(self) -> Floats:
        """Rate of each job on the fastest model the oracle has, steps/s."""
        return self.setting.reference__k[self.kind]

    def pair_rates(self, first: Ints, second: Ints) -> tuple[Floats, Floats]:
        """Estimated or true rates of jobs in rows ``first`` and ``second`` while they share, a row a pair, steps/s."""
        if self.partner_rates is not None:
            where = f"estimates {type(self.partner_rates).__qualname__} at {self.now_s:g} s"
            answer = self.partner_rates(self, first, second)
            one, two = checked_pair_rates(answer, len(first), len(self.price__g), where)
            if self.setting.gpus__g.all():
                return one, two
            absent__g = ~self.setting.oracle.alone__kg.any(axis=0)  # for a time no job can run on them
            return np.where(absent__g, 0.0, one), np.where(absent__g, 0.0, two)
        shared, kind, other = self.setting.oracle.shared__kkg, self.kind[first], self.kind[second]
        return shared[kind, other], shared[other, kind]


class PairRates(Protocol):
    """Estimates of the rates of jobs that share GPUs."""

    def __call__(self, view: RoundView, first: Ints, second: Ints) -> tuple[Floats, Floats]:
        """Rates of the jobs in rows ``first`` and ``second`` while they share, one row a pair, steps/s."""


class PairRateEstimates(PairRates, Protocol):
    """Estimates that learn from a run; their state must survive ``restore(state())``.

    They decide which jobs may share GPUs; the oracle has the rates at which those run. A pair whose true rate is 0
    loses a round.
    """

    def arrive(self, job: int, kind: int) -> int:
        """The kind by which a new job's rates are estimated when it shares; jobs arrive in order of ids, or again."""

    def observe(self, job_a: int, job_b: int, model: int) -> None:
        """Learn the true rates of a pair that has run on the model with this position."""

    def leave(self, job: int) -> None:
        """Remove a job that has ended."""

    def state(self) -> dict[str, Any]:
        """Their state as JSON values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Shares of the time, 0 to 1: row ``r`` is job ``first[r]``, or it and ``second[r]`` (> ``first[r]``) together.

    Singles come before pairs, each sorted by id. A job without a row has no share and reserves
    nothing. Rows with shares of 0 may be left out for pairs, not for singles.
    """

    first: Ints
    second: Ints
    share__rg: Floats
    solver_s: float = 0.0
    """CPU seconds spent in a solver."""

    @classmethod
    def of_singles(cls, job_id: Ints, share__jg: Floats, solver_s: float = 0.0) -> Allocation:
        """Every job by itself. Shares that solvers leave up to ``EXCESS`` outside of 0 to 1 become 0 or 1."""
        share = share__jg
        numbers = type(share) is np.ndarray and share.dtype == np.float64 and share.size
        if numbers and share.min() >= 0 and share.max() <= 1:
            share = share.copy()
        else:
            with suppress(TypeError, ValueError):  # the engine refuses what is no table of numbers
                within = np.clip(share, 0.0, 1.0)
                share = within if (np.abs(share - within) <= EXCESS).all() else share
        return cls(job_id, np.full(len(job_id), ALONE, np.int64), share, solver_s)


class ShareAllocator(Protocol):
    """The run-time half of a policy of shares; its state must survive ``restore(state())``."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares for these jobs; None keeps the current ones."""

    def state(self) -> dict[str, Any]:
        """State between rounds, as JSON values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


@dataclass(frozen=True)
class SharePlan:
    """An allocator, and the rules by which its shares become rounds.

    ``pairs``: jobs may share GPUs, so pairs of them are candidates too. ``visit``: see ``VISITS``.
    ``strict``: only candidates of positive priority run; otherwise GPUs that are left go to any job that fits.
    ``prompt``: a new allocation may follow at once, as with ``strict``, although jobs without shares may run.
    ``estimates``: estimated rates of pairs; None if the true ones are known.
    ``max_num_gpu``: most GPUs of a job; None if jobs may have any number.
    ``entities``: the tenants that it distinguishes, if any; those of the jobs must be the same.
    ``overcommitted``: the shares of a GPU model may add up to more GPUs than there are; without rounds, all shares of
    that model are then scaled down alike. ``policy``: the policy, as errors name it.
    """

    allocator: ShareAllocator
    pairs: bool = False
    visit: str = "fastest"
    strict: bool = False
    max_num_gpu: int | None = None
    estimates: PairRateEstimates | None = None
    prompt: bool = False
    entities: frozenset[str] = frozenset()
    overcommitted: bool = False
    policy: str = ""

    @property
    def identity(self) -> list[object]:
        """The part of a plan that checkpoints compare: class of the allocator, and rules of the rounds."""
        return [type(self.allocator).__qualname__, self.pairs, self.visit, self.strict]


class RoundPolicy(Protocol):
    """A policy for jobs, which makes one plan for a setting."""

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""


def setting_of(cluster: Cluster, oracle: Oracle, seed: int = 0) -> Setting:
    """The setting of a run: the cluster's models of whole GPUs sorted by name, their GPUs, and the rates on them."""
    nodes = cluster.offered.select(["gpu_model", "num_gpu"]).to_pylist()
    count: dict[str, int] = {}
    for node in nodes:
        if node["num_gpu"]:
            count[node["gpu_model"]] = count.get(node["gpu_model"], 0) + node["num_gpu"]
    models = tuple(sorted(count))
    best = oracle.gpu_models.index(oracle.fastest_first[0])
    gpus = np.array([count[model] for model in models], np.int64)
    return Setting(models, gpus, oracle.restricted(models), oracle.alone__kg[:, best], seed)


def view_of(
    rows: npt.NDArray[Any], setting: Setting, now_s: float, price__g: Floats, tenants: Sequence[str],
    partner_rates: PairRates | None = None,
) -> RoundView:  # fmt: skip
    """The policy's view of these records (``GANG``) of active jobs at ``now_s`` seconds; prices in $/h."""
    tenant = tuple("" if code < 0 else tenants[code] for code in rows["tenant"].tolist()) if tenants else ()
    return RoundView(
        setting=setting,
        now_s=now_s,
        job_id=rows["id"].copy(),
        kind=rows["kind"].astype(np.int64),
        num_gpu=rows["num_gpu"].astype(np.int64),
        weight=rows["weight"].copy(),
        submit_s=rows["submit_s"].copy(),
        steps_left=rows["total"] - rows["run"],
        deadline_s=rows["deadline_s"].copy(),
        price__g=price__g.copy(),
        tenant=tenant,
        partner_rates=partner_rates,
    )
