"""The state file and the working folder: whole or absent, refused when it is something else."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.folder import STATE, unfinished, working_folder
from fastsim.engine.checkpoints.state import SPANS, PartChecksums, RunState
from fastsim.engine.checkpoints.value_checks import check_range
from fastsim.errors import ResultError, ScenarioError

EMPTY = RunState("pods", {"now_s": 0.0, "arrived": 0}, {"x": np.arange(3)})


def test_a_state_comes_back_to_the_bit(tmp_path: Path) -> None:
    meta = {"times": [0.1 + 0.2, -math.inf, 5e-324], "number": 2**64 - 1, "text": "ä"}
    RunState("pods", meta, {"x": np.array([[1, 2]], np.int32), "none": np.zeros(0, np.uint8)}).write(tmp_path / STATE)
    back = RunState.read(tmp_path / STATE)
    assert back.meta == meta and sorted(back.arrays) == ["none", "x"]
    assert back.arrays["x"].tolist() == [[1, 2]] and back.arrays["x"].dtype == np.int32
    assert [path.name for path in tmp_path.iterdir()] == [STATE]


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut short", b"text"])
def test_what_is_no_state_is_one_clear_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / STATE).write_bytes(content)
    with pytest.raises(ResultError, match="expected the checkpoint of a run"):
        RunState.read(tmp_path / STATE)


def test_another_layout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastsim.engine.checkpoints.state.VERSION", 6)
    EMPTY.write(tmp_path / STATE)
    monkeypatch.undo()
    with pytest.raises(ResultError, match="found the state of a run of version 6, expected version"):
        RunState.read(tmp_path / STATE)


def test_the_working_folder_stands_beside_the_run() -> None:
    assert working_folder(Path("runs/a")) == Path("runs/a.checkpoint") == working_folder(Path("runs/a.checkpoint"))


@pytest.mark.parametrize(("keep", "state", "left"), [(False, True, False), (True, True, True), (True, False, False)])
def test_a_complete_run_leaves_its_checkpoint_only_if_asked(
    tmp_path: Path, keep: bool, state: bool, left: bool
) -> None:
    with unfinished(tmp_path / "run", Checkpoints(keep=keep), False, False) as folder:
        if state:
            EMPTY.write(folder / STATE)
    assert folder.exists() == left


def test_a_strangers_file_outlives_the_checkpoint_it_stands_beside(tmp_path: Path) -> None:
    with unfinished(tmp_path / "run", Checkpoints(), False, False) as folder:
        EMPTY.write(folder / STATE)
        for name in ("notes.txt", "weights"):
            (folder / name).touch()
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "weights"]


@pytest.mark.parametrize("state", [False, True])
def test_a_broken_run_leaves_what_can_be_gone_on_from(tmp_path: Path, state: bool) -> None:
    with pytest.raises(KeyboardInterrupt), unfinished(tmp_path / "run", Checkpoints(), False, False) as folder:
        if state:
            EMPTY.write(folder / STATE)
        raise KeyboardInterrupt
    assert folder.exists() == state


def test_an_unfinished_run_is_not_overwritten_by_accident(tmp_path: Path) -> None:
    old = tmp_path / "run.checkpoint"
    old.mkdir()
    EMPTY.write(old / STATE)
    with pytest.raises(ResultError, match="an unfinished run is there"), unfinished(old, Checkpoints(), False, False):
        pass
    with unfinished(tmp_path / "run", Checkpoints(), True, False) as folder:
        assert (folder / STATE).exists()
    EMPTY.write(_made(old) / STATE)
    with unfinished(tmp_path / "run", Checkpoints(), False, True) as folder:
        assert not (folder / STATE).exists()


def test_a_run_killed_before_its_first_checkpoint_is_in_nobodys_way(tmp_path: Path) -> None:
    left = _made(tmp_path / "run.checkpoint")
    for name in ("jobs.0.arrows", "wait.f8", ".state.npz.12.partial"):
        (left / name).touch()
    with unfinished(tmp_path / "run", Checkpoints(), False, False) as folder:
        assert not list(folder.iterdir())


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, overwrite: bool) -> None:
    other = _made(tmp_path / "run.checkpoint")
    (other / "weights.pt").touch()
    expected = r"found weights\.pt, expected the checkpoint of a run or no such folder"
    with pytest.raises(ResultError, match=expected), unfinished(tmp_path / "run", Checkpoints(), False, overwrite):
        pass
    assert (other / "weights.pt").exists()


def test_parts_must_be_as_long_as_the_checkpoint_says(tmp_path: Path) -> None:
    kept = {
        "tables": {"jobs": [("jobs.0.arrows", 5)]},
        "waits": dict.fromkeys(SPANS, 0) | {"wait": 2, "preemptions": 0},
    }
    taken = RunState("pods", kept, {})
    for name, size in taken.parts().items():
        (tmp_path / name).write_bytes(bytes(size + 1))
    sums = PartChecksums(tmp_path)
    taken = RunState(
        "pods", kept | {"checksums": {name: sums.of(name, size) for name, size in taken.parts().items()}}, {}
    )
    taken.check_parts(tmp_path)
    (tmp_path / "wait.f8").write_bytes(bytes(15) + b"x")
    with pytest.raises(ResultError, match=r"wait\.f8: found other bytes than were written"):
        taken.check_parts(tmp_path)
    (tmp_path / "wait.f8").write_bytes(bytes(15))
    with pytest.raises(ResultError, match=r"wait\.f8: found 15 bytes, expected at least 16"):
        taken.check_parts(tmp_path)
    (tmp_path / "jobs.0.arrows").unlink()
    with pytest.raises(ResultError, match=r"jobs\.0\.arrows: found no such file"):
        taken.check_parts(tmp_path)


def test_a_checksum_is_of_the_beginning_and_grows_with_the_file(tmp_path: Path) -> None:
    sums, path = PartChecksums(tmp_path), tmp_path / "a.f8"
    for content, size in ((b"abc", 2), (b"abcdef", 5), (b"abcdef", 5), (b"xy", 1)):
        path.write_bytes(content)
        assert sums.of("a.f8", size) == hashlib.sha256(content[:size]).hexdigest()


@pytest.mark.parametrize("part", ["header", "x"])
def test_changed_values_in_a_valid_file_are_refused(tmp_path: Path, part: str) -> None:
    EMPTY.write(tmp_path / STATE)
    with np.load(tmp_path / STATE) as stored:
        arrays = dict(stored)
    arrays[part] = arrays[part].copy()
    arrays[part][-2] += 1
    np.savez(tmp_path / STATE, **arrays)
    with pytest.raises(ResultError, match=r"found other bytes than were written|cannot be read"):
        RunState.read(tmp_path / STATE)


def test_an_array_that_claims_more_than_its_bytes_gets_no_room(tmp_path: Path) -> None:
    EMPTY.write(tmp_path / STATE)
    content = (tmp_path / STATE).read_bytes()
    claimed = content.replace(b"'shape': (3,), }       ", b"'shape': (3333333,), } ")
    assert claimed != content and len(claimed) == len(content)
    (tmp_path / STATE).write_bytes(claimed)
    with pytest.raises(ResultError, match="cannot be read"):
        RunState.read(tmp_path / STATE)
    np.savez_compressed(tmp_path / STATE, header=np.zeros(9, np.uint8))
    with pytest.raises(ResultError, match="cannot be read"):
        RunState.read(tmp_path / STATE)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("pods", [0, -1, 1.5, True, "9"])
def test_wrong_distances_are_refused(pods: Any) -> None:
    with pytest.raises(ScenarioError, match=r"checkpoint_pods: found .*, expected a whole number of 1 or more"):
        Checkpoints(pods=pods).check()


@pytest.mark.parametrize("wall_s", [-1.0, math.inf, math.nan, "60"])
def test_wrong_seconds_are_refused(wall_s: Any) -> None:
    with pytest.raises(ScenarioError, match="checkpoint_s"):
        Checkpoints(wall_s=wall_s).check()


def test_a_value_out_of_range_is_named_with_its_position() -> None:
    check_range(np.array([0, 5]), 0, np.array([0, 5]), "pods")
    with pytest.raises(ValueError, match=r"pods\[1\] = 6 \(allowed: 0 to 5\)"):
        check_range(np.array([0, 6]), 0, 5, "pods")
    check_range(np.array([0.0, np.nan]), 0.0, 5.0, "wait", missing=True)
    with pytest.raises(ValueError, match=r"wait\[1\] = nan \(allowed: 0\.0 to 5\.0\)"):
        check_range(np.array([0.0, np.nan]), 0.0, 5.0, "wait")
