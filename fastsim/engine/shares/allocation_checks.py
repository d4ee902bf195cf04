"""Checks of what an allocator returns: shares of active jobs that the time and the GPUs of a run allow."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.solver_time import solver_seconds
from fastsim.engine.shares.plan import ALONE, EXCESS, Allocation, Floats, Ints, RoundView, SharePlan
from fastsim.errors import PolicyError, kind_of

RETURNED = "an Allocation or None"
ALONE_BYTE = b"\xff"
"""Each of the bytes of ``ALONE``; to count them takes a tenth of the time that to compare numbers takes."""
REMEDY = "write Allocation.of_singles(view.job_id, share__jg): a row for each job, a column for each GPU model"


def checked_allocation(plan: SharePlan, view: RoundView) -> Allocation | None:
    """The allocation for these jobs as contiguous columns; PolicyError if it names other jobs or has invalid shares."""
    answer = plan.allocator.allocate(view)
    if answer is None or _is_plain(answer, plan, view):
        return answer
    return _Check(plan, view).columns(answer)


def _is_plain(answer: Any, plan: SharePlan, view: RoundView) -> bool:
    """Whether an answer has a row for each job, in the engine's own columns, and is within all bounds.

    Most answers are. This question takes 10 us for 1,000 jobs; :class:`_Check` finds out what is wrong otherwise.
    """
    if not isinstance(answer, Allocation) or answer.first is not view.job_id or type(answer.solver_s) is not float:
        return False
    second, share, shape = answer.second, answer.share__rg, (len(view), len(view.price__g))
    if not (_is_column(second, np.int64, shape[:1]) and _is_column(share, np.float64, shape)):
        return False
    if not share.size or not 0 <= answer.solver_s < np.inf or second.tobytes().count(ALONE_BYTE) < second.nbytes:
        return False
    if not share.min() >= 0:  # true for NaN
        return False
    if share.dot(_ones(share.shape[1])).max() > 1 + EXCESS:
        return False
    used__g = view.num_gpu.astype(np.float64).dot(share)
    return plan.overcommitted or bool((used__g <= view.setting.gpus__g * (1 + EXCESS)).all())


@cache
def _ones(models: int) -> Floats:
    return np.ones(models)


def _is_column(column: Any, dtype: type, shape: tuple[int, ...]) -> bool:
    """Whether this is a contiguous array of this type and shape."""
    return type(column) is np.ndarray and column.dtype == dtype and column.shape == shape and column.flags.c_contiguous


class _Check:
    """The check of one answer; ``where`` is the policy and the time."""

    def __init__(self, plan: SharePlan, view: RoundView) -> None:
        self.plan, self.view = plan, view
        self.every_row = np.arange(len(view))

    @property
    def where(self) -> str:
        """The place of an error: policy and time."""
        name = self.plan.policy or type(self.plan.allocator).__qualname__
        return f"policy {name} at {self.view.now_s:g} s"

    def columns(self, answer: Any) -> Allocation:
        """The columns of an answer."""
        if not isinstance(answer, Allocation):
            raise PolicyError(f"{self.where}: allocate()", kind_of(answer), RETURNED, REMEDY)
        share = self.numbers("share__rg", answer.share__rg, "biuf", np.float64, 2)
        first, second = (self.numbers(name, getattr(answer, name), "iu", np.int64, 1) for name in ("first", "second"))
        shape = len(first), len(self.view.price__g)
        if len(second) != len(first) or share.shape != shape:
            found = f"{len(first)} first jobs, {len(second)} second jobs, shares of shape {share.shape}"
            expected = f"a second job for each first one, shares of shape {shape}"
            raise PolicyError(self.where, found, expected, REMEDY)
        solver_s = solver_seconds(answer.solver_s, self.where)
        if share.size:
            share = self.within(first, second, share)
            self.check_sums(first, second, share)
        elif len(first):
            self.rows(first, second)
        return Allocation(first, second, share, solver_s)

    def numbers(self, name: str, column: Any, kinds: str, dtype: type, axes: int) -> npt.NDArray[Any]:
        """A column as a contiguous array of ``axes`` dimensions."""
        expected = f"{'whole numbers' if kinds == 'iu' else 'numbers'} in an array of {axes} dimension{'s'[: axes - 1]}"
        where = f"{self.where}: {name}"
        try:
            array = np.asarray(column)
        except Exception:  # an object of the user's may fail in any way
            raise PolicyError(where, kind_of(column), expected, REMEDY) from None
        if isinstance(column, np.ma.MaskedArray) and np.ma.is_masked(column):
            raise PolicyError(where, "an array with masked values", expected, "fill them: .filled(0.0)")
        if array.ndim != axes or (array.dtype.kind not in kinds and array.size):
            raise PolicyError(where, kind_of(column), expected, REMEDY)
        return np.ascontiguousarray(array, dtype)

    def within(self, first: Ints, second: Ints, share: Floats) -> Floats:
        """Shares from 0 to 1; negative ones that solvers leave become 0."""
        low, high = float(share.min()), float(share.max())
        if low >= -EXCESS and high <= 1 + EXCESS:  # false for NaN
            return share if low >= 0 else np.maximum(share, 0.0)
        row, model = np.argwhere(~((share >= -EXCESS) & (share <= 1 + EXCESS)))[0].tolist()
        found = f"share {share[row, model]:g} of {self.named(first[row], second[row])} on {self.models[model]}"
        raise PolicyError(f"{self.where}: shares", found, "a part of the time, 0 to 1")

    def check_sums(self, first: Ints, second: Ints, share: Floats) -> None:
        """PolicyError if a job has more than all of the time, or the jobs have more GPUs of a model than there are."""
        view = self.view
        row, mate = self.rows(first, second)
        time__r = share @ np.ones(share.shape[1])
        time__j = time__r if row is self.every_row else np.bincount(row, time__r, len(view))
        if len(mate):
            time__j += np.bincount(mate, time__r[second != ALONE], len(view))
        if time__j.max() > 1 + EXCESS:
            job = int(time__j.argmax())
            found = f"shares of job {view.job_id[job]} that sum to {time__j[job]:.9g}"
            raise PolicyError(f"{self.where}: shares", found, "a sum over GPU models and partners of at most 1")
        if self.plan.overcommitted:
            return
        gpus__g, num_gpu = view.setting.gpus__g, view.num_gpu[row].astype(np.float64)
        if (num_gpu @ share > gpus__g * (1 + EXCESS)).any():
            # A job cannot use models that have fewer GPUs than it needs, or on which it makes no progress.
            usable = (num_gpu[:, None] <= gpus__g) & (view.rate__jg[row] > 0)
            self.refuse_excess(num_gpu @ np.where(usable | (second != ALONE)[:, None], share, 0.0))

    def refuse_excess(self, used__g: npt.NDArray[Any]) -> None:
        """PolicyError if these are more GPUs of a model than there are."""
        gpus__g = self.view.setting.gpus__g
        over = np.flatnonzero(used__g > gpus__g * (1 + EXCESS))
        if len(over):
            g = over[0]
            found = f"shares x GPUs of the jobs on {self.models[g]} that sum to {used__g[g]:.9g}"
            do = "a policy that promises more on purpose returns SharePlan(..., overcommitted=True)"
            raise PolicyError(f"{self.where}: shares", found, f"at most its {gpus__g[g]} GPUs", do)

    def rows(self, first: Ints, second: Ints) -> tuple[Ints, Ints]:
        """Rows of the first jobs, and of the second jobs of pairs; PolicyError for jobs not active or named twice."""
        job_id = self.view.job_id
        if len(first) == len(job_id) and (second == ALONE).all() and np.array_equal(first, job_id):
            return self.every_row, first[:0]
        pair = second != ALONE
        row, mate = self.row_of(first), self.row_of(second[pair])
        if pair.any() and (wrong := mate <= row[pair]).any():
            at = np.flatnonzero(pair)[wrong.argmax()]
            found = f"first={first[at]}, second={second[at]}"
            raise PolicyError(f"{self.where}: pairs", found, "the smaller id first, another job second")
        key = np.full(len(first), ALONE)
        key[pair] = mate
        key += row * (len(job_id) + 1)
        falls = np.flatnonzero(key[1:] <= key[:-1]) + 1
        if len(falls) and not (len(falls) == 1 and pair[falls[0] :].all() and not pair[: falls[0]].any()):
            places, counts = np.unique(key, return_counts=True)
            if (counts > 1).any():
                at = int((key == places[counts.argmax()]).argmax())
                found = f"{self.named(first[at], second[at])} twice"
                raise PolicyError(f"{self.where}: shares", found, "one row for each")
        return row, mate

    def row_of(self, ids: Ints) -> Ints:
        """Rows of the view with these ids; PolicyError for others."""
        job_id = self.view.job_id
        row = np.minimum(np.searchsorted(job_id, ids), max(len(job_id) - 1, 0))
        wrong = job_id[row] != ids if len(job_id) else np.ones(len(ids), bool)
        if wrong.any():
            found = f"job {ids[wrong.argmax()]}, which is not active"
            raise PolicyError(f"{self.where}: shares", found, "ids of the jobs in the view (view.job_id)")
        return row

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the GPU models."""
        return self.view.setting.gpu_models

    @staticmethod
    def named(first: Any, second: Any) -> str:
        """A job or a pair, as errors name them."""
        return f"job {first}" if second == ALONE else f"jobs {first} and {second}"
