"""Saving, loading and citing results."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.engine import result as module
from fastsim.engine.result import FRAMES, LATER, Result
from fastsim.errors import InputError, ResultError
from fastsim.foundation.written_folder import KEPT_INPUTS, RUN_FILES, RUN_RECORD
from tests.unit.engine.online.test_online import one_gpu_nodes, played, pods


def make(seed: int = 0) -> Result:
    return played(one_gpu_nodes(2), pods({"duration_s": 3.0}, {}, {}), seed=seed)


def test_a_saved_run_loads_as_it_was(tmp_path: Path) -> None:
    first = make().labelled(("@article{a}", "@article{b}"), policy="fgd")
    back = Result.load(first.save(tmp_path / "run"))
    for name in FRAMES:
        assert getattr(back, name).equals(getattr(first, name)), name
        assert getattr(back, name).schema == getattr(first, name).schema, name
    assert back.provenance == json.loads(json.dumps(first.provenance))
    assert back.cite() == "@article{a}\n\n@article{b}"
    assert back.provenance["policy"] == "fgd"


def test_a_run_is_written_to_any_path_of_a_folder(tmp_path: Path) -> None:
    texts: list[str | Path] = [tmp_path / "one", str(tmp_path / "two")]
    for folder in texts:
        Path(folder).mkdir()
        make().write(folder)
        make().write_record(folder)
    assert Result.load(texts[0]).summary.equals(Result.load(texts[1]).summary)


def test_equal_runs_save_equal_bytes(tmp_path: Path) -> None:
    one, two = make().save(tmp_path / "one"), make().save(tmp_path / "two")
    for name in FRAMES:
        assert (one / f"{name}.parquet").read_bytes() == (two / f"{name}.parquet").read_bytes(), name


def test_a_folder_in_use_is_kept_unless_overwritten(tmp_path: Path) -> None:
    make().save(tmp_path / "run")
    (tmp_path / "run" / "mine.txt").write_text("keep")
    with pytest.raises(ResultError, match="exists already"):
        make().save(tmp_path / "run")
    assert (tmp_path / "run" / "mine.txt").exists()
    with pytest.raises(ResultError, match=r"found files that are not of fastsim \(mine\.txt\)"):
        make().save(tmp_path / "run", overwrite=True)
    (tmp_path / "run" / "mine.txt").unlink()
    make().save(tmp_path / "run", overwrite=True)


def test_a_run_writes_the_files_that_may_be_replaced(tmp_path: Path) -> None:
    make().save(tmp_path / "run")
    assert {f"{name}.parquet" for name in (*FRAMES, *LATER, *KEPT_INPUTS)} == RUN_FILES
    assert {path.name for path in (tmp_path / "run").iterdir()} <= RUN_FILES | {RUN_RECORD}


def test_a_run_whose_replacement_was_killed_is_there(tmp_path: Path) -> None:
    make().save(tmp_path / "run").rename(tmp_path / ".run.12.former")
    assert len(Result.load(tmp_path / "run").summary) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_parquet", full)
    with pytest.raises(ResultError, match="No space left on device"):
        make().save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(ResultError, match="expected a folder of a saved run"):
        Result.load(tmp_path)


@pytest.mark.parametrize(("place", "value", "told"), [
    (("timing", "wall_s"), "long", "timing.wall_s: found str, expected a number"),
    (("provenance", "cluster"), 5, "provenance.cluster: found int, expected what a run wrote"),
    (("provenance", "workload", "pods"), "many", "provenance.workload.pods: found str, expected what a run wrote"),
    (("citations",), [7], "citations: found int, expected a list of texts"),
    (("timing",), [], "timing: found list, expected a mapping"),
])  # fmt: skip
def test_a_record_edited_by_hand_is_refused_where_it_is_wrong(
    tmp_path: Path, place: tuple[str, ...], value: object, told: str
) -> None:
    record = tmp_path / "run" / RUN_RECORD
    make().save(tmp_path / "run")
    whole = part = json.loads(record.read_text())
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    record.write_text(json.dumps(whole))
    with pytest.raises(InputError, match=f"run.json: {told}"):
        Result.load(tmp_path / "run")


def test_provenance_says_what_decides_the_bytes() -> None:
    known = make(seed=7).provenance
    assert known["options"]["seed"] == 7
    assert len(known["cluster"]["sha256"]) == len(known["workload"]["sha256"]) == 64
    assert known["plan"]["terms"][0]["kernel"] == "fgd"
    assert "-ffp-contract=off" in known["build"]["flags"] or "/fp:precise" in known["build"]["flags"]
    json.dumps(known)


def test_a_result_says_how_many_pods_or_jobs_it_is_of(tmp_path: Path) -> None:
    assert repr(make()) == "Result('?': 3 pods on 2 nodes, seed 0)"
    rounds = fs.simulate("gavel:2:2:2", "synth:gavel-trace?jobs=3", "las", out=tmp_path / "run")
    for result in (rounds, Result.load(tmp_path / "run")):
        assert repr(result) == "Result('las': 3 jobs on 6 nodes, seed 0)"
    shared = fs.simulate("uniform?nodes=1&gpu=T4&gpus=2", "synth:detectors?jobs=2", "exclusive")
    assert "Result('exclusive': 2 jobs on 1 nodes" in repr(shared)
