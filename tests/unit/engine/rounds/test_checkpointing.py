"""What stands in a run's working folder, and what is no checkpoint of a run in rounds."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import fastsim as fs
from fastsim.engine.checkpoint_folder import STATE, Checkpoints
from fastsim.engine.rounds.checkpoint import RoundCheckpoint
from fastsim.engine.rounds.checkpointing import is_of_rounds, opened_writer, stored_state
from fastsim.errors import ResultError, ScenarioError

JOBS = "synth:gavel?jobs=25&rate_per_hour=4&seed=1"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of a run that kept its checkpoint."""
    out = tmp_path_factory.mktemp("saving") / "run"
    fs.simulate("gavel:2:2:2", JOBS, "fifo", out=out, checkpoint_pods=10, keep_checkpoint=True)
    return out.with_name("run.checkpoint")


def test_a_state_says_how_to_build_the_run_again(work: Path) -> None:
    assert [path.name for path in work.iterdir()] == [STATE]
    taken = stored_state(work)
    fields = taken.note["scenario"]["fields"]
    assert (fields["cluster"], fields["workload"], fields["policy"]) == ("gavel:2:2:2", JOBS, "fifo")
    assert Checkpoints(**taken.note["keeping"]) == Checkpoints(10, None, True)
    assert len(taken.arrived) >= 10 and min(taken.note["spent_s"]) > 0


def test_time_of_earlier_starts_counts(work: Path) -> None:
    taken = stored_state(work)
    with ExitStack() as stack:
        saving = opened_writer(stack, taken.note["scenario"], work.with_name("other"), False, Checkpoints(), taken)
        assert saving.spent_s == tuple(taken.note["spent_s"])
        assert saving.note()["spent_s"][0] > taken.note["spent_s"][0]


def test_checkpoints_need_a_folder_and_numbers_that_mean_something(tmp_path: Path) -> None:
    for keeping, out, match in (
        (Checkpoints(0), tmp_path / "run", "checkpoint_pods"),
        (Checkpoints(5), None, "out=FOLDER"),
    ):
        with ExitStack() as stack, pytest.raises(ScenarioError, match=match):
            opened_writer(stack, {}, out, False, keeping, None)
    assert not list(tmp_path.iterdir())


def test_what_is_no_run_in_rounds(work: Path, tmp_path: Path) -> None:
    assert is_of_rounds(work) and not is_of_rounds(tmp_path)
    (tmp_path / STATE).write_bytes(b"no archive")
    assert not is_of_rounds(tmp_path)
    np.savez(tmp_path / STATE, meta=np.zeros(3))
    assert not is_of_rounds(tmp_path)
    state = RoundCheckpoint.read(work / STATE)
    RoundCheckpoint({**state.meta, "note": {}}, state.arrays).write(tmp_path / STATE)
    with pytest.raises(ResultError, match="found a state without scenario, expected the checkpoint of"):
        stored_state(tmp_path)
