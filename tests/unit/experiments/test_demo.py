"""The demo: the same cluster and pods for every policy, and a folder that is complete or as it was."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.errors import FastsimError, ResultError
from fastsim.experiments import demo
from fastsim.reports import text_tables
from tests.needs import needs


@dataclass
class Run:
    """A result that only knows how to be saved."""

    def save(self, folder: Path) -> None:
        """Leave a file behind."""
        folder.mkdir(parents=True)
        (folder / "run.json").write_text('{"provenance": {}, "timing": {}, "citations": []}')


@dataclass
class Compared:
    """A comparison that writes files; one of them may fail."""

    names: tuple[str, ...]
    error: Exception | None = None
    table = pl.DataFrame({"name": ["a"], "x": [1]})

    @property
    def results(self) -> list[Run]:
        """One run for each name."""
        return [Run() for _ in self.names]

    def to_html(self, path: Path) -> None:
        """The report."""
        path.write_text("page")

    def to_png(self, path: Path) -> None:
        """The picture."""
        if self.error is not None:
            raise self.error
        path.write_bytes(b"png")


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_every_policy_meets_the_same_cluster_and_pods() -> None:
    scenarios = demo.scenarios(nodes=7, pods=9, seed=3)
    assert len(scenarios) == demo.runs() == len({scenario.policy for scenario in scenarios}) == 8
    assert {scenario.cluster for scenario in scenarios} == {"openb:7?seed=3"}
    assert {scenario.workload for scenario in scenarios} == {"synth:openb?pods=9&seed=3&tune=1.3&tune_seed=3"}
    assert {(scenario.seed, scenario.record) for scenario in scenarios} == {(3, "timeline")}
    assert (
        [scenario.name for scenario in scenarios] == [scenario.policy for scenario in scenarios] == list(demo.POLICIES)
    )
    assert [problem for scenario in scenarios for problem in scenario.problems()] == []


def test_the_default_is_the_published_size() -> None:
    assert demo.scenarios()[0].cluster == "openb:1213?seed=42" and "pods=8152&" in str(demo.scenarios()[0].workload)


def test_a_small_demo_compares_all_and_counts_its_runs() -> None:
    reported: list[int] = []
    comparison = demo.policy_comparison(nodes=6, pods=30, workers=1, progress=reported.append)
    assert comparison.names == demo.POLICIES and reported[-1] == demo.runs()
    # The same demand for every policy, so their tables can be compared.
    assert len({result.summary["arrived_gpu_milli"].item() for result in comparison.results}) == 1


@needs("altair")
@needs("vl_convert")
def test_the_folder_has_table_report_picture_and_every_run(tmp_path: Path) -> None:
    compared: Any = Compared(("fgd", "0.9*fgd + 0.1*pwr"))
    folder = tmp_path / "new" / "demo"
    assert demo.write_folder(compared, folder) == folder
    runs = ["runs/0.9fgd+0.1pwr/run.json", "runs/fgd/run.json"]
    assert tree(tmp_path / "new") == [f"demo/{name}" for name in ("report.html", "report.png", *runs, "table.csv")]
    assert (folder / "table.csv").read_text() == "name,x\na,1\n"


def test_without_the_report_extra_the_report_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    comparison = demo.policy_comparison(nodes=6, pods=30, workers=1)
    folder = demo.write_folder(comparison, tmp_path / "demo")
    assert sorted(path.name for path in folder.iterdir()) == ["report.md", "runs", "table.csv"]
    assert "| best_fit |" in (folder / "report.md").read_text()
    said = text_tables.demo_text(comparison.table, folder)
    assert said.endswith(f'report: {folder}/report.md   charts need: pip install "fastsim-gpu[report]"\n')


@needs("altair")
@needs("vl_convert")
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), FastsimError("no report extra")])
def test_a_failure_keeps_the_folder_of_before(tmp_path: Path, error: Exception) -> None:
    folder = tmp_path / "demo"
    demo.write_folder(Compared(("best_fit",)), folder)  # type: ignore[arg-type]
    before = tree(tmp_path)
    compared: Any = Compared(("fgd",), error)
    with pytest.raises(FastsimError) as raised:
        demo.write_folder(compared, folder)
    if isinstance(error, OSError):
        assert type(raised.value) is ResultError
        assert str(raised.value) == f"{folder}: cannot be written: No space left on device"
    assert tree(tmp_path) == before and "demo/runs/best_fit/run.json" in before
    demo.write_folder(Compared(("fgd",)), folder)  # type: ignore[arg-type]
    assert "demo/runs/fgd/run.json" in tree(tmp_path) and "demo/runs/best_fit/run.json" not in tree(tmp_path)
