"""Sia's program as its published simulator wrote it: every row, the same objective, runs that end."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveView
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.engine.checkpoints.clock import CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.errors import PolicyError
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.sia_program import NONE, SiaInstance, best_choices
from fastsim.policies.deciders.sia_recorded import RecordedSiaDecider, recorded_choices, recorded_program
from fastsim.policies.solvers.multiple_choice import ChoiceSolver
from tests.adaptive import adaptive_setting, random_jobs, told_of
from tests.needs import needs

needs_cbc = needs("cylp")
SETTING = adaptive_setting()
ROOM = np.array([3, 4])


def wishes(value: list[list[float]], gpus: Any, former: list[int], forced: list[bool]) -> SiaInstance:
    """Jobs whose choices are one on each of two GPU models, or several."""
    group = np.array([0, 1] if len(value[0]) == 2 else [0, 0, 1, 1])
    return SiaInstance(np.array(value, np.float32), group, np.array(gpus), np.array(former), np.array(forced))


def test_rows_and_columns_stand_as_published() -> None:
    fixed = wishes([[0.5, 0.25]], [[2, 2]], [1], [True])
    loose = wishes([[1.0, 0.5, 0.25, 0.125], [1.0, 1.0, 1.0, 1.0]], [1, 2, 1, 4], [2, NONE], [True, False])
    found = recorded_program([fixed, loose], ROOM, 1.0)
    # First choice of both jobs that adapt, then the second, ...; last the two of the job of fixed size.
    assert found.cost.tolist() == [0.0, 0.0, -0.5, 0.0, -0.75, 0.0, -0.875, 0.0, -0.5, -0.75]
    matrix = np.zeros((len(found.row_high), 10))
    matrix[found.row, found.column] = found.value
    used = [[1, 1, 2, 2, 0, 0, 0, 0, 2, 0], [0, 0, 0, 0, 1, 1, 4, 4, 0, 2]]
    first, second, third = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1], [1, 0] * 4 + [0, 0], [0, 1] * 4 + [0, 0]
    expected = [*np.eye(10)[[9, 4]], *-np.eye(10), *np.eye(10), *used, *-np.array(used), first, second, third]
    assert matrix.tolist() == np.array(expected).tolist()
    assert found.row_high.tolist() == [1] * 2 + [0] * 10 + [1] * 10 + [3, 4] + [0, 0] + [1, 1, 1]
    assert found.row_low.tolist() == [1] * 2 + [-np.inf] * 27
    assert recorded_program([fixed, loose], ROOM, 1.0, minimise=False).cost.tolist() == (-found.cost).tolist()


@st.composite
def lists(draw: st.DrawFn) -> list[SiaInstance]:
    """Jobs of fixed size, jobs that adapt, or both; none has to keep what it has."""
    found = []
    for width in draw(st.sampled_from([(2,), (4,), (2, 4)])):
        rows = draw(st.lists(st.lists(st.integers(1, 30), min_size=width, max_size=width), min_size=1, max_size=4))
        gpus = [[n, n] for n in draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))]
        value = (np.array(rows) / 10).tolist()
        found.append(wishes(value, gpus if width == 2 else [1, 2, 1, 4], [NONE] * len(rows), [False] * len(rows)))
    return found


@needs_cbc
@settings(max_examples=60, deadline=None)
@given(lists(), st.sampled_from([-1.0, 0.5, 1.1]), st.booleans())
def test_both_solvers_reach_the_same_objective(jobs: list[SiaInstance], without: float, minimise: bool) -> None:
    from fastsim.policies.solvers.cbc import CbcSolver

    found = recorded_choices(jobs, ROOM, without, CbcSolver(), minimise)
    expected = best_choices(jobs, ROOM, without, ChoiceSolver(searched=False), minimise).objective
    assert found.objective == pytest.approx(expected, rel=1e-4, abs=1e-6)  # the gap at which CBC may stop
    used = np.zeros(2)
    for wish, chosen in zip(jobs, found.chosen, strict=True):
        some = np.flatnonzero(chosen != NONE)
        gpus = np.broadcast_to(wish.gpus__jq, wish.value__jq.shape)
        np.add.at(used, wish.group__q[chosen[some]], gpus[some, chosen[some]])
    assert (used <= ROOM).all()


def played(seed: int, **more: Any) -> Any:
    sia = Sia(solver="cbc")
    return run_adaptive(told_of(SETTING), SETTING, sia.begin(SETTING), random_jobs(random.Random(seed), 5), **more)


@needs_cbc
def test_no_jobs_are_no_places() -> None:
    decider = Sia(solver="cbc").begin(SETTING).decider
    assert isinstance(decider, RecordedSiaDecider)
    assert decider.decide(AdaptiveView(60.0, [])) == {}


@needs_cbc
@pytest.mark.parametrize("seed", range(3))
def test_a_run_ends_twice_the_same_and_may_be_resumed(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    first, second = played(seed, checkpoint=CheckpointSchedule(path, every_rounds=20)), played(seed)
    resumed = played(seed, resume=RunState.read(path))
    assert np.isfinite(first.jobs["finish_s"]).all() and first.solver_s > 0
    for name in ("jobs", "trained", "busy_s"):
        content = getattr(first, name).tobytes()
        assert content == getattr(second, name).tobytes() == getattr(resumed, name).tobytes()


@pytest.mark.parametrize(
    "given", [{"solver": "glpk"}, {"solver": "cbc", "ties": 1}, {"solver": "cbc", "rigid": True},
              {"solver": "cbc", "aware": False}]
)  # fmt: skip
def test_what_it_does_not_go_with_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"parameter (solver|ties)"):
        Sia(**given)
