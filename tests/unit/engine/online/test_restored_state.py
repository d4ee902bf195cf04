"""Checks of a checkpoint's values, linked lists among them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.value_checks import records_of
from fastsim.engine.online.restored_state import MEMBER, followed
from fastsim.errors import FastsimError
from fastsim.simulation.run_warnings import OptionUnused


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
