"""Charts of a trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.reports.charts.chart_files import written_chart
from fastsim.reports.charts.trace_charts import MOST_MODELS, load_points, spread, trace_chart
from fastsim.workload import Workload
from fastsim.workload.load_statistics import trace_frame
from tests.needs import needed


def openb(pods: int = 60) -> pl.DataFrame:
    """Generated pods."""
    return trace_frame(Workload.synth("openb", pods=pods, seed=1))


def test_a_chart_of_each_kind(tmp_path: Path) -> None:
    needed("altair")
    chart = trace_chart(openb(), Cluster.preset("openb"), "mine")
    titles = [part["title"] for part in chart.to_dict()["concat"]]
    assert titles == [
        "Offered load by accepted GPU models", "GPU requests", "Durations", "Times between arrivals", "CPU requests",
        "Memory requests",
    ]  # fmt: skip
    assert written_chart(chart, tmp_path / "a.svg").read_text().startswith("<svg")


def test_few_labels_keep_a_line_of_their_own() -> None:
    models = [[f"m{k % 12}"] for k in range(60)]
    frame = openb().with_columns(gpu_models=pl.Series(models), num_gpu=pl.lit(1), gpu_milli=pl.lit(1000))
    points, title = load_points(frame, None)
    assert points["model"].n_unique() == MOST_MODELS and "others" in points["model"] and title == "GPUs offered"
    assert load_points(openb(), Cluster.preset("openb"))[1] == "GPUs offered (% of capacity)"
    jobs = trace_frame(Workload.synth("sia", jobs=10, seed=1))
    assert load_points(jobs, Cluster.preset("openb"))[1] == "GPUs that arrive in an hour"


def test_nothing_to_spread() -> None:
    frame = openb()
    assert spread(frame, "deadline_s") is None
    assert spread(frame.with_columns(cpu_milli=pl.lit(5)), "cpu_milli") is None
    points = spread(frame, "duration_s")
    assert points is not None and points["y"][-1] == 100 and points["x"].is_sorted()
