"""The placement papers on short generated traces: cells, bars and curves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.errors import FastsimError
from fastsim.experiments.reproduce import fgd_protocol, placement_cells, placement_stages
from fastsim.experiments.reproduce.fgd_pwr import fgd_reproduction, pwr_reproduction, run_count
from fastsim.experiments.reproduce.placement_figures import MIXES, POLICIES, Task, task_runs


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short generated traces on few nodes: so many pods are played as take all GPUs."""
    monkeypatch.setattr(fgd_protocol, "PODS", 300)
    monkeypatch.setattr(fgd_protocol, "_preset", lambda: Cluster.scaled("openb", nodes=60))
    fgd_protocol.trace.cache_clear()
    yield
    fgd_protocol.trace.cache_clear()


def test_fgd_on_generated_pods_is_a_glance() -> None:
    reported: list[int] = []
    reproduction = fgd_reproduction(None, True, 1, reported.append)
    assert (
        reproduction.runs == reported[-1] == run_count(None, "fgd", True) == 12
        and "generated pods" in reproduction.source
    )
    assert reproduction.cells["verdict"].unique().sort().to_list() == ["indicative", "no reference"]
    mean = reproduction.cells.filter(pl.col("case") == "mean of all")
    assert mean["policy"].unique().len() == 6 and set(mean["figure"]) >= {
        "default trace",
        "7 (ratio)",
        "7 (amount)",
        "9a",
    }
    found = mean.filter(figure="default trace", quantity="gpu_allocation_mean", policy="fgd", at=100.0)
    assert found["published"].to_list() == [pytest.approx(95.23, abs=0.005)]
    assert reproduction.curves["chart"].unique().sort().to_list() == [
        "GPU allocation, generated-01", "fragmented GPUs, generated-01",
    ]  # fmt: skip


def test_pwr_is_compared_with_fgd() -> None:
    reproduction = pwr_reproduction(None, True, 1)
    assert reproduction.runs == run_count(None, "pwr", True) == 2 * (len(POLICIES) + len(MIXES))
    saving = reproduction.cells.filter(quantity="power_saving_vs_fgd", case="mean of all")
    assert set(saving.filter(policy="fgd")["ours"]) == {0.0}
    assert saving.filter(policy="pwr", at=0.4)["ours"].min() > 5  # type: ignore[operator]
    assert reproduction.cells.filter(policy="random")["verdict"].unique().to_list() == ["no reference"]


def test_published_and_recorded_numbers_are_never_one_cell() -> None:
    made = pwr_reproduction(None, True, 1, figures=("slides 15",))
    assert set(made.cells["figure"]) == {"slides 15"}
    both = made.cells.filter(pl.col("published").is_not_null() & pl.col("original").is_not_null())
    assert both.is_empty()
    assert made.cells["published"].count() > 100 and made.cells["original"].count() > 10


def test_parts_add_up_to_the_whole() -> None:
    made = fgd_reproduction(None, True, 1, figures=("8", "9c")).cells
    assert set(made["figure"]) == {"8", "9c"} and set(made["verdict"]) == {"no reference"}
    (run,) = task_runs(Task(None, "generated-01", (42,), ("fgd",)))
    failed = [count for (figure, _), count in run.parts.items() if figure == "9c"]
    assert sum(failed) == run.failed and len(failed) > 2
    free = sum(part for (figure, _), part in run.parts.items() if figure == "8")
    assert free == pytest.approx(100 - run.curves["alloc_pct"][100], abs=0.5)


def test_ranges_in_words_are_a_glance() -> None:
    made = pwr_reproduction(None, True, 1, figures=("slides, text",)).cells.filter(pl.col("published").is_not_null())
    low, high = (made.filter(quantity=f"power_saving_vs_fgd_range_{end}")["ours"].to_list() for end in ("low", "high"))
    assert len(made) == 8 and all(least < most for least, most in zip(low, high, strict=True))
    assert set(made["verdict"]) == {"indicative"}
    assert placement_cells.traces_of("constrained GPUs (10-33 %)") == placement_cells.CONSTRAINED
    assert placement_cells.traces_of("multigpu20") == ("multigpu20",)


def test_runs_keep_all_curves() -> None:
    (run,) = task_runs(Task(None, "generated-01", (42,), ("fgd",)))
    assert set(run.curves) == {
        "arrive_pct", "alloc_pct", "frag_pct", "frag_ratio_pct", "power_w", "power_cpu_w", "grar",
    }  # fmt: skip
    assert len(run.curves["power_w"]) == 201 and run.curves["grar"][0] == 1 and run.failed > 0


def test_a_folder_without_lists(tmp_path: Path) -> None:
    with pytest.raises(FastsimError, match=r"no openb_pod_list_\*\.csv"):
        fgd_reproduction(tmp_path, True, 1)


def test_stages_after_the_first_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_stages, "FIRST_PODS", 150)
    figures = (placement_stages.DESCHEDULE, placement_stages.INFLATION)
    reported: list[int] = []
    made = fgd_reproduction(None, True, 1, reported.append, figures)
    assert made.runs == reported[-1] == run_count(None, "fgd", True, figures) == 12 + 2 * 2 * 4
    ours = {row[:-1]: row[-1] for row in made.cells.select("figure", "case", "policy", "quantity", "ours").iter_rows()}
    moved = ("deschedule", "frag_multi_pod", "best_fit")
    before, after = (ours[*moved, f"fragmented GPUs, {stage}"] for stage in ("schedule", "post_deschedule"))
    assert after < before and set(made.cells["verdict"]) == {"no reference"}
    grown = (ours["inflation", "1.2 times", "fgd", f"allocated GPUs, {stage}"] for stage in ("inflation", "schedule"))
    assert next(grown) > next(grown)
