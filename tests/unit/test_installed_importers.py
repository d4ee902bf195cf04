"""Kinds of files by the word before the colon: options of importers, and importers of other packages."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastsim as fs
from fastsim.cli.list import PUBLISHED as LISTED
from fastsim.errors import InputError, ScenarioError
from fastsim.workload.texts import ENTRY_POINT_GROUP, KINDS, PUBLISHED, installed_importer

MODULE = """
import fastsim as fs
import polars as pl

def read(path, *, gpus=1):
    rows = {"submit_s": [0.0, 1.0], "num_gpu": [gpus, gpus], "duration_s": [5.0, 5.0]}
    return fs.Workload.from_polars(pl.DataFrame(rows), name=path)

NUMBER = 1 / 0 if __name__ == "broken_borg" else 1
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which two packages are installed, one of which cannot be imported."""
    for module, kind in (("borg_reader", "borg"), ("broken_borg", "broken")):
        (tmp_path / f"{module}.py").write_text(MODULE)
        notes = tmp_path / f"{module}-0.1.dist-info"
        notes.mkdir()
        (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 0.1\n")
        (notes / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{kind} = {module}:read\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_package_adds_a_kind_of_files(installed: Path) -> None:
    assert installed_importer("borg") is not None and installed_importer("nobody") is None
    run = fs.simulate("uniform?nodes=2&gpu=T4&gpus=4", "borg:some/where?gpus=3", "best_fit", record="placements")
    assert [len(gpus) for gpus in run.placements["gpu_ids"]] == [3, 3]
    assert fs.Workload.from_text("borg:x?tune=0.5").rows == 2


@pytest.mark.parametrize(
    ("text", "error", "found"),
    [
        (
            "borg:x?gpu=3",
            ScenarioError,
            "unknown option 'gpu', expected options among gpus, tune, tune_seed, oversized",
        ),
        ("broken:x", ScenarioError, r"importer 'broken' of entry point broken_borg:read: found ZeroDivisionError"),
        ("nobody:x", InputError, "neither a file nor a known name"),
        ("borg:", InputError, "neither a file nor a known name"),
    ],
)
def test_what_such_an_importer_cannot_read_is_one_error(
    text: str, error: type[Exception], found: str, installed: Path
) -> None:
    with pytest.raises(error, match=found):
        fs.Workload.from_text(text)


def test_a_file_of_that_name_is_a_file(installed: Path) -> None:
    Path("borg:x.csv").write_text("submit_s,num_gpu\n0,1\n0,2\n")
    assert fs.Workload.from_text("borg:x.csv").table()["num_gpu"].to_pylist() == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_texts_are_those_of_the_importer(kind: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(
        ScenarioError, match=r"unknown option 'nonsense', expected options among (?!path|data)"
    ) as raised:
        fs.Workload.from_text(f"{kind}:{tmp_path / 'x'}?nonsense=1")
    assert "tune, tune_seed, oversized" in str(raised.value)


def test_the_command_line_lists_the_published_traces() -> None:
    assert LISTED == PUBLISHED and not PUBLISHED.keys() & KINDS.keys()
