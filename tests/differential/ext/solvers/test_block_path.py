"""The compiled way through blocks and cones ends where the one in numpy ends, and when it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.engine.shares.plan import Floats, Ints
from fastsim.policies.programs import published_programs
from fastsim_ext.solvers import block_path
from tests.reference.rounds import block_path as plain
from tests.reference.rounds.block_equations import BlockProgram
from tests.strategies import scenarios_per_run

SEEDS = st.integers(0, 2**32 - 1)
cones = pytest.mark.parametrize("cones", [False, True])


def compiled(program: BlockProgram) -> Floats | None:
    """What the kernel finds."""
    found = np.full(program.cost__jv.shape, np.nan)
    return found if block_path.optimum(**vars(program), found__jv=found) else None


def drawn(random: np.random.Generator, cones: bool, jobs: int, models: int) -> BlockProgram:
    """Jobs with a row of time, most with some rows more: rates under the level, or under a floor, or anything.

    With cones, the level is above the time of each job; without, some programs have costs instead of a level.
    """
    job = np.sort(np.concatenate([np.arange(jobs), random.integers(0, jobs, random.integers(0, 3 * jobs + 1))]))
    first = np.append(True, np.diff(job) > 0)
    width, rows = models + cones, len(job)
    row, lift = np.zeros((rows, width)), np.zeros(rows)
    row[:, :models] = np.where(first[:, None], 1.0, -random.uniform(0.1, 5, (rows, models)))
    room = np.where(first, 1.0, -random.uniform(0, 0.02, rows))
    levelled, price = ~first & (random.random(rows) < 0.6), -1.0
    lift[levelled] = 1.0
    if cones:
        time = ~first & (random.random(rows) < 0.8)
        row[time], row[time, models], lift[time], room[time], price = 0.0, random.uniform(0.1, 3), -1.0, -0.5, 1.0
        lift[levelled & ~time] = 0.0
    elif not levelled.any() or random.random() < 0.2:
        lift[:], price = 0.0, 0.0
    cost = random.uniform(-1, 0, (jobs, width)) * (price == 0)
    if cones:
        cost[:, models] = random.uniform(0, 1, jobs)
    rate = random.uniform(0.1, 5, (jobs if cones else 0, models))
    rate *= random.random(rate.shape) < 0.9
    return BlockProgram(
        random.choice([1.0, 2.0, 4.0], jobs), random.integers(1, 40, models).astype(float), job, row, lift, room, cost,
        price, rate,
    )  # fmt: skip


def both(slow: Floats | None, fast: Floats | None) -> tuple[bool, bool]:
    """Whether the plain and the compiled method find an end; it is the same one if both do."""
    if slow is not None and fast is not None:
        # The same steps, summed in another order; along a face of many optima that grows, as it does in numpy alone if
        # the jobs stand in another order.
        assert fast == pytest.approx(slow, rel=1e-6, abs=1e-6)
    return slow is not None, fast is not None


def ends(program: BlockProgram) -> tuple[bool, bool]:
    """Whether each of the two finds the end of this program."""
    return both(plain.optimum(program), compiled(program))


@cones
@settings(max_examples=scenarios_per_run(200), deadline=None)
@given(seed=SEEDS)
def test_both_end_at_one_point(cones: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    slow, fast = ends(drawn(random, cones, int(random.integers(1, 30)), int(random.integers(1, 6))))
    assert slow == fast


Seen = list[tuple[bool, bool]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Whether each of the two finds the end of every published program, in their order."""
    found: Seen = []
    published = published_programs.optimum

    def optimum(use__j: Ints, gpus__g: Ints, **others: Any) -> Floats | None:
        fast = published(use__j, gpus__g, **others)
        found.append(both(plain.optimum(BlockProgram(use__j.astype(float), gpus__g.astype(float), **others)), fast))
        return fast

    monkeypatch.setattr(published_programs, "optimum", optimum)
    return found


@pytest.mark.parametrize("policy", ["finish_time_fairness", "max_min_fairness_water_filling"])
@pytest.mark.parametrize("mode", ["base", "perf"])
def test_both_end_at_one_point_in_every_program_of_a_run(policy: str, mode: str, seen: Seen) -> None:
    policy = f"{policy}(mode={mode}, program_compat=True)"
    fs.simulate("gavel:4:4:4", "synth:gavel?jobs=30&rate_per_hour=6&seed=1", policy)
    assert len(seen) > 30 and set(seen) == {(True, True)}


def test_thousands_of_jobs_have_an_end(seen: Seen) -> None:
    random, jobs = np.random.default_rng(3), 2_000
    rate, use, gpus = random.uniform(0.1, 5, (jobs, 3)), random.choice([1, 2, 4], jobs), np.array([900, 300, 1200])
    published_programs.least_ratio(rate, use, gpus, random.uniform(0, 2, jobs), random.uniform(0.1, 3, jobs))
    level, factor, rising = random.uniform(0, 0.3, jobs), random.uniform(0.5, 2, jobs), random.random(jobs) < 0.5
    published_programs.last_rise(rate, use, gpus, level, factor, rising)
    assert seen == [(True, True)] * 2


def one_job() -> BlockProgram:
    """A job that fills its GPU."""
    return BlockProgram(
        np.ones(1), np.ones(1), np.zeros(1, np.int64), np.ones((1, 1)), np.zeros(1), np.ones(1), np.full((1, 1), -1.0),
        0.0, np.zeros((0, 1)),
    )  # fmt: skip


@pytest.mark.parametrize("field", ["use__j", "gpus__g", "row__rv", "room__r", "cost__jv"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_no_answer(field: str, value: float) -> None:
    program = one_job()
    assert compiled(program) == pytest.approx(np.ones((1, 1)), abs=1e-6)
    changed: dict[str, Any] = {field: np.full_like(getattr(program, field), value)}
    assert ends(replace(program, **changed)) == (False, False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("use__j", np.ones(2)), ("use__j", np.ones(0)), ("gpus__g", np.ones(2)), ("row__rv", np.ones((1, 2))),
        ("row__rv", np.ones((2, 1))), ("lift__r", np.ones(2)), ("room__r", np.ones(0)), ("cost__jv", np.ones((1, 2))),
        ("rate__jg", np.ones((1, 1))), ("rate__jg", np.ones((2, 1))), ("rate__jg", np.ones((0, 2))),
        ("job__r", np.zeros(2, np.int64)), ("job__r", np.zeros(0, np.int64)),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        compiled(replace(one_job(), **{field: value}))


@pytest.mark.parametrize("jobs", [[0, 2], [-1, 1], [1, 0]])
def test_rows_out_of_order_are_refused(jobs: list[int]) -> None:
    program = BlockProgram(
        np.ones(2), np.ones(1), np.array(jobs), np.ones((2, 1)), np.zeros(2), np.ones(2), np.zeros((2, 1)), 0.0,
        np.zeros((0, 1)),
    )  # fmt: skip
    with pytest.raises(ValueError, match="order"):
        compiled(program)


def test_more_than_any_memory_is_refused() -> None:
    # A block has a row and a column for each row of the job with the most of them.
    jobs, rows = 700_000, 40_000
    program = BlockProgram(
        np.ones(jobs), np.ones(1), np.zeros(rows, np.int64), np.ones((rows, 1)), np.zeros(rows), np.ones(rows),
        np.zeros((jobs, 1)), 0.0, np.zeros((0, 1)),
    )  # fmt: skip
    with pytest.raises(MemoryError):
        compiled(program)
