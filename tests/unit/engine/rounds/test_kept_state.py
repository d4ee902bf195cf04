"""States of users' objects in checkpoints: each wrong answer is one error that names the method, both engines alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastsim as fs
from fastsim.engine.adaptive.plan import AdaptivePlan
from fastsim.engine.checkpoints.clock import CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.kept_state import EXPECTED, kept_state, restored
from fastsim.engine.rounds.options import Job, RoundOptions
from fastsim.engine.shares.plan import Allocation, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import PolicyError
from tests.views import setting

LOOP: list[Any] = []
LOOP.append(LOOP)
WRONG: list[tuple[Any, str]] = [
    (None, r"state\(\): found None"), ([1], r"state\(\): found \[1\] \(list\)"), (dict, "found the class dict"),
    ({"a": {1, 2}}, r"state\(\)\['a'\]: found \{1, 2\} \(set\)"),
    ({"a": [0, {"b": b"x"}]}, r"\['a'\]\[1\]\['b'\]: found"),
    ({"seen": {7: 1.0}}, r"state\(\)\['seen'\]: key: found 7 \(int\)"),
    ({(1, 2): 3}, r"state\(\): key: found \(1, 2\)"),
    ({"a": np.zeros(2)}, r"\['a'\]: found an array of float64"), ({"a": np.int64(3)}, r"\['a'\]: found a int64"),
    ({"a": LOOP}, r"\['a'\]\[0\]\[0\].*: found"), ({"a": print}, "found the function print"),
]  # fmt: skip
"""Answers of ``state()``, and the beginning of what is said."""
RIGHT: tuple[dict[str, Any], ...] = (
    {},
    {"a": None, "b": [(1, 2.5), True]},
    {"n": float("nan"), "x": {"y": ["z"]}},
    {"f": np.float64(1.5)},
)


class Even:
    """A third of each GPU model for everybody; its state is what it was given."""

    def __init__(self, state: Any = None, restore: Callable[[Any], Any] = lambda state: None) -> None:
        self.answer, self.restore = {} if state is None else state, restore

    def allocate(self, view: Any) -> Allocation:
        """The same shares in every round."""
        return Allocation.of_singles(view.job_id, np.full((len(view), 2), 1 / 3))

    def state(self) -> Any:
        """Whatever it is."""
        return self.answer


def played(allocator: Any, **more: Any) -> None:
    where = setting((2, 1), [[1.0, 2.0]])
    jobs = [Job(100.0 * job, 0, 1, 1000.0) for job in range(8)]
    plan = SharePlan(allocator, overcommitted=True)
    run_rounds(where, plan, [JobBatch.of(jobs)], RoundOptions(realloc_s=0.0), **more)


def keeper(state: Any) -> Any:
    return SimpleNamespace(state=lambda: state, restore=lambda state: None)


@pytest.mark.parametrize(("state", "text"), WRONG)
def test_a_state_that_no_file_gives_back_is_one_error(state: Any, text: str) -> None:
    with pytest.raises(
        PolicyError, match=rf"^SimpleNamespace: .*{text}.*, expected a dict of values as JSON"
    ) as caught:
        kept_state(keeper(state))
    assert caught.value.expected == EXPECTED and caught.value.exit_code == 2


def test_states_that_json_has_are_kept() -> None:
    for state in RIGHT:
        assert kept_state(keeper(state)) is state
    for lacking in (
        SimpleNamespace(state=dict),
        SimpleNamespace(restore=print),
        SimpleNamespace(state={}, restore=print),
    ):
        with pytest.raises(PolicyError, match="checkpoint: found SimpleNamespace, whose state cannot be stored"):
            kept_state(lacking)


def test_runs_look_at_states_where_they_are_taken(tmp_path: Path) -> None:
    every = CheckpointSchedule(tmp_path / "state.npz", every_rounds=1)
    with pytest.raises(PolicyError, match=r"Even: state\(\)\['a'\]: found \{1\} \(set\)"):
        played(Even({"a": {1}}), checkpoint=every)
    decider = SimpleNamespace(decide=lambda view: {}, solver_s=0.0, state=lambda: 3, restore=print)
    policy: Any = SimpleNamespace(begin=lambda setting: AdaptivePlan(decider), engine="adaptive")
    with pytest.raises(PolicyError, match=r"SimpleNamespace: state\(\): found 3 \(int\)"):
        fs.simulate("sia:1:1:1", "synth:sia?jobs=2&seed=1", policy, out=tmp_path / "run", checkpoint_s=0)


def test_a_state_that_is_not_taken_back_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    played(Even({"a": 1}), checkpoint=CheckpointSchedule(path, every_rounds=4))
    for restore, text in (
        (lambda state: state["b"], r"Even: restore\(\): found KeyError: 'b', expected no error"),
        (lambda state: Even(), r"Even: restore\(\): found a Even, expected None: it changes the object itself"),
    ):
        with pytest.raises(PolicyError, match=text):
            played(Even(restore=restore), resume=RunState.read(path))
    taken: list[Any] = []
    played(Even(restore=taken.append), resume=RunState.read(path))
    assert taken == [{"a": 1}]


def test_errors_of_users_keep_their_kind() -> None:
    refused = SimpleNamespace(restore=lambda state: (_ for _ in ()).throw(PolicyError("mine", "this", "that")))
    with pytest.raises(PolicyError, match="mine: found this"):
        restored(refused, {})
