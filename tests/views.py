"""Small settings and views of jobs for tests of policies that share GPUs over time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView, ShareAllocator
from fastsim.performance.oracle import Oracle

MODELS = ("a", "b", "c")


def setting(
    gpus: Sequence[int],
    alone: Sequence[Sequence[float]],
    shared: object = 0.4,
    *,
    sizes: Sequence[int] = (),
    seed: int = 0,
) -> Setting:
    """GPUs of each model; rates of kinds alone; rates together as a table, or as a part of the rates alone."""
    kinds = tuple((f"w{k}", size) for k, size in enumerate(sizes or [1] * len(alone)))
    rates = np.array(alone, float)
    together = rates[:, None, :] * shared if isinstance(shared, float) else np.array(shared, float)
    together = np.broadcast_to(together, (len(kinds), len(kinds), len(gpus)))
    models = MODELS[: len(gpus)]
    return Setting(models, np.array(gpus), Oracle(kinds, models, rates, together), rates.max(axis=1), seed)


def view(
    where: Setting, kinds: Sequence[int], *, ids: Sequence[int] = (), steps: object = 1000.0, age_s: object = 0.0
) -> RoundView:
    """These kinds of jobs, at time 0; ids count from 0 unless given."""
    kind = np.array(kinds, np.int64)
    ones = np.ones(len(kind))
    return RoundView(
        setting=where,
        now_s=0.0,
        job_id=np.array(ids if len(ids) else range(len(kind)), np.int64),
        kind=kind,
        num_gpu=np.array([where.oracle.kinds[k][1] for k in kinds], np.int64),
        weight=ones,
        submit_s=-np.array(age_s) * ones,
        steps_left=np.array(steps) * ones,
        deadline_s=ones * np.inf,
        price__g=np.zeros(len(where.gpu_models)),
    )


def shares(allocation: Allocation | None) -> dict[int | tuple[int, int], list[float]]:
    """Shares by job or pair of jobs, without the rows of 0."""
    assert allocation is not None
    rows = zip(allocation.first.tolist(), allocation.second.tolist(), allocation.share__rg.tolist(), strict=True)
    return {one if two == ALONE else (one, two): share for one, two, share in rows if any(share)}


def assert_well_formed(allocation: Allocation, seen: RoundView) -> None:
    """Every job has a row, singles stand before pairs, both by id; shares are within 0 and 1, jobs in their time."""
    singles = allocation.second == ALONE
    assert allocation.first[singles].tolist() == seen.job_id.tolist()
    rows = list(zip((~singles).tolist(), allocation.first.tolist(), allocation.second.tolist(), strict=True))
    assert rows == sorted(set(rows))
    assert (allocation.first[~singles] < allocation.second[~singles]).all()
    assert ((allocation.share__rg >= 0) & (allocation.share__rg <= 1)).all()
    time = dict.fromkeys(seen.job_id.tolist(), 0.0)
    for one, two, share in zip(allocation.first, allocation.second, allocation.share__rg.sum(axis=1), strict=True):
        for job in (one, two) if two != ALONE else (one,):
            time[int(job)] += float(share)
    assert max(time.values()) <= 1 + 1e-12  # shares of a few models, added up


def gpus_used(allocation: Allocation, seen: RoundView) -> list[float]:
    """GPUs of each model that the shares take on average; pairs take those of one job."""
    size = dict(zip(seen.job_id.tolist(), seen.num_gpu.tolist(), strict=True))
    taken = np.array([size[int(job)] for job in allocation.first], float)
    used: list[float] = (taken[:, None] * allocation.share__rg).sum(axis=0).tolist()
    return used


def assert_resumes(begun: Callable[[], ShareAllocator], views: Sequence[RoundView], cut: int) -> None:
    """The answers do not change if the policy is put into JSON and taken back before view number ``cut``."""
    whole, broken = begun(), begun()
    for number, seen in enumerate(views):
        if number == cut:
            memory = json.loads(json.dumps(broken.state()))
            broken = begun()
            broken.restore(memory)
        assert shares(whole.allocate(seen)) == shares(broken.allocate(seen))


@st.composite
def settings(draw: st.DrawFn, sizes: Sequence[int] = (1, 1, 2, 4)) -> Setting:
    """One to three models, four kinds of jobs; every kind fits on the first model and runs there."""
    count = draw(st.integers(1, 3))
    gpus = [draw(st.integers(4, 9)), *draw(st.lists(st.integers(1, 9), min_size=count - 1, max_size=count - 1))]
    rate = st.sampled_from([0.0, 0.5, 1.0, 3.0])
    alone = [[draw(st.sampled_from([0.5, 1.0])), *(draw(rate) for _ in gpus[1:])] for _ in sizes]
    return setting(gpus, alone, draw(st.sampled_from([0.0, 0.3, 0.6, 0.9])), sizes=sizes, seed=draw(st.integers(0, 99)))


@st.composite
def histories(draw: st.DrawFn, sizes: Sequence[int] = (1, 1, 2, 4)) -> list[RoundView]:
    """Views of one setting one after the other: jobs come with rising ids, and leave."""
    where = draw(settings(sizes))
    kinds = draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=20))
    lives = [(start, start + draw(st.integers(1, 6))) for start in sorted(draw(st.integers(0, 5)) for _ in kinds)]
    found = []
    for now in range(max(end for _, end in lives)):
        ids = [job for job, (start, end) in enumerate(lives) if start <= now < end]
        if ids:
            ages = [float(now - lives[job][0]) for job in ids]
            steps = [float(draw(st.integers(1, 50))) for _ in ids]
            found.append(view(where, [kinds[job] for job in ids], ids=ids, steps=steps, age_s=ages))
    return found
