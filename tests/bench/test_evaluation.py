"""The evaluation command plays what it should, and a figure that is not the published one makes it fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from bench.evaluation import checked, main
from fastsim.experiments.reproduce import fgd_protocol as protocol
from fastsim.experiments.reproduce.placement_figures import (
    LIMITS,
    POLICIES,
    PlacementRun,
    curves,
    deviations,
    largest,
    tasks,
)

KEY = ("FGD", "t", 42)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short generated traces."""
    monkeypatch.setattr(protocol, "PODS", 300)
    protocol.trace.cache_clear()


def run(policy: str = "fgd", off: float = 0.0) -> PlacementRun:
    """A run whose curves are lines, ``off`` percentage points too high."""
    line = np.linspace(0, 100, 131)
    made: dict[str, Any] = {"alloc_pct": line + off, "frag_pct": line / 10, "frag_ratio_pct": line / 5}
    return PlacementRun(policy, "t", 42, 10, 0.1, 0.1, made)


def known() -> dict[tuple[str, str, int], pl.DataFrame]:
    """The lines as published."""
    return {KEY: pl.DataFrame(run().curves), ("Random", "t", 42): pl.DataFrame(run().curves)}


@pytest.mark.usefixtures("small")
def test_the_command_plays_every_run(tmp_path: Path) -> None:
    words = ["--workers", "1", "--seeds", "2", "--traces", "generated-01,generated-03"]
    outcome = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "curves.parquet")])
    assert outcome.exit_code == 0, outcome.output
    assert "generated pods" in outcome.output and "24 runs" in outcome.output
    rows = pl.read_parquet(tmp_path / "curves.parquet")
    assert len(rows) == 24 * 131
    assert rows.select("policy", "trace", "seed").unique().height == 24
    last = rows.filter(pl.col("arrive_pct") == 130)["alloc_pct"]
    assert last.is_between(50, 100).all()


def test_an_unknown_trace_is_one_clear_error() -> None:
    outcome = CliRunner().invoke(main, ["--traces", "generated-99"])
    assert outcome.exit_code == 1
    assert "found generated-99, expected some of generated-01" in outcome.output


def test_tasks_keep_the_seeds_of_a_trace_together() -> None:
    listed = tasks(None, ["a", "b"], 7)
    assert [(task.trace, len(task.seeds)) for task in listed] == [("a", 5), ("a", 2), ("b", 5), ("b", 2)]
    assert [seed for task in listed[:2] for seed in task.seeds] == list(range(42, 49))


def test_a_wrong_figure_is_found() -> None:
    assert deviations([run()], known()) == (dict.fromkeys(LIMITS, 0.0), 1)
    worst, compared = deviations([run(), run(off=0.01)], known())
    assert compared == 2 and worst["alloc_pct"] == pytest.approx(0.01)
    assert checked([run()], known())
    assert not checked([run(off=0.01)], known())
    assert checked([run("best_fit")], known()), "nothing is published of it"
    assert checked([run(), run("random", off=3.0)], known()), "draws differ, so only its mean is told"


def test_a_missing_value_is_infinitely_far() -> None:
    assert largest([1.0, np.nan], [1.5, np.nan]) == 0.5
    assert largest([1.0, np.nan], [1.0, 2.0]) == largest([1.0], [1.0, 1.0]) == np.inf


@pytest.mark.usefixtures("small")
def test_curves_count_arrivals_only() -> None:
    import fastsim as fs

    pods = protocol.trace(None, "generated-02")
    cluster, workload = pods.offered(1)
    result = fs.simulate(cluster, workload, "fgd", typical=pods.typical, record="timeline")
    made = curves(result.timeline, cluster.total_gpus)
    at_end = 100 * result.summary["gpu_milli_alloc"].item() / cluster.total_gpu_milli
    assert set(made) == {"arrive_pct", *LIMITS, "power_cpu_w", "power_w", "grar"}
    assert made["alloc_pct"][130] == pytest.approx(at_end, abs=0.5)
    assert set(POLICIES) >= {"fgd", "random"}
