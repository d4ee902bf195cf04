"""Checks of a checkpoint's values: changes of nodes that are past, linked lists."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.value_checks import records_of
from fastsim.engine.online.restored_state import MEMBER, check_past, followed, past_changes
from fastsim.errors import FastsimError
from fastsim.scenario.outages import Change
from fastsim.simulation.run_warnings import OptionUnused

AWAY = np.zeros(2, np.int32)


def test_changes_that_are_past_leave_nodes_away() -> None:
    changes = [Change(1.0, 0, False, True), Change(2.0, 1, False, False), Change(3.0, 0, True, True)]
    past = past_changes(iter(changes), 2, 2.5, AWAY)
    assert (past.away.tolist(), past.failed, past.planned) == ([1, 1], 1, 1)
    loop = {"ended": False, "planned": 3, "failed": 1}
    arrays = {"away": np.array([1, 1], np.int32), "spared": np.zeros(2, np.uint8)}
    check_past(past, loop, arrays, planned=4)
    check_past(past, loop | {"failed": 0}, {"away": np.array([0, 1]), "spared": np.array([1, 0], np.uint8)}, planned=4)
    with pytest.raises(ValueError, match="away"):
        check_past(past, loop, arrays | {"spared": np.ones(2, np.uint8)}, planned=4)
    with pytest.raises(ValueError, match="3 planned changes"):
        check_past(past, loop, arrays, planned=5)


def test_changes_of_later_times_are_no_past_ones() -> None:
    with pytest.raises(ValueError, match=r"loop\.change_next = 1, more changes of nodes than there were until 0 s"):
        past_changes(iter([Change(1.0, 0, False, False)]), 1, 0.0, AWAY)
    assert past_changes(iter([Change(1.0, 0, False, True)]), 1, 0.0, AWAY).failed == 1  # left out ahead of its time
    endless = (Change(float(k), 0, k % 2 == 1, True) for k in count())
    with pytest.raises(ValueError, match="more changes"):
        past_changes(endless, 1 << 60, 5.0, AWAY)


def test_a_linked_list_that_comes_back_is_refused() -> None:
    assert followed(np.array([1, -1, 0]), 2, "line") == [2, 0, 1]
    with pytest.raises(ValueError, match="line without end"):
        followed(np.array([1, 0]), 0, "line")


def kept_state(folder: Path, workload: str | Path) -> RunState:
    """A checkpoint of a run with preemption; ``again.checkpoint`` is a copy to be changed."""
    with pytest.warns(OptionUnused, match="preempt"):  # no pod has a priority
        fs.simulate("openb:9", workload, "best_fit", queue="las_skip", preempt="priority", out=folder / "run",
                    checkpoint_pods=200, keep_checkpoint=True)  # fmt: skip
    shutil.copytree(working_folder(folder / "run"), folder / "again.checkpoint")
    return RunState.read(folder / "again.checkpoint" / STATE)


def test_a_pod_of_no_gang_has_no_next_pod(tmp_path: Path) -> None:
    state, again = kept_state(tmp_path, "synth:openb?pods=300&seed=4&rate_per_hour=20"), tmp_path / "again.checkpoint"
    members = records_of(state.arrays, "members", MEMBER).copy()
    assert (members["gang"] == -1).any()
    members["next_in_gang"][members["gang"] == -1] = 1
    RunState("pods", state.meta, state.arrays | {"members": members.view(np.uint8).reshape(-1)}).write(again / STATE)
    with pytest.raises(FastsimError, match="members: next_in_gang, a next pod of no gang"):
        fs.resume(tmp_path / "again")


def test_a_gang_is_not_free_while_it_forms(tmp_path: Path) -> None:
    pods = pl.DataFrame({
        "submit_s": [float(k) for k in range(300)], "duration_s": 900.0, "cpu_milli": 1000, "memory_mib": 1024,
        "num_gpu": 1, "gpu_milli": 1000, "job_id": [f"g{k // 3}" for k in range(300)], "gang_size": 3,
    })  # fmt: skip
    fs.Workload.from_polars(pods).write(tmp_path / "pods.parquet")
    state, again = kept_state(tmp_path, tmp_path / "pods.parquet"), tmp_path / "again.checkpoint"
    rules = state.meta["rules"]
    both = max(rules["free_gang"], rules["forming"])
    assert both >= 0
    RunState("pods", state.meta | {"rules": rules | {"free_gang": both, "forming": both}}, state.arrays).write(
        again / STATE
    )
    with pytest.raises(FastsimError, match=f"gangs: {both} both free and forming"):
        fs.resume(tmp_path / "again")
