"""One chart of one object, by function and by method; how objects show themselves in notebooks."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastsim as fs
from fastsim.reports import plots, series_plots
from fastsim.reports.plots import CLUSTER
from fastsim.reports.report_charts import KEYS
from tests import reports
from tests.needs import needed

altair = needed("altair")
schemapi = needed("altair.utils.schemapi")


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    """altair looks at every part of a chart again and again, a second each; one chart is looked at below."""
    with schemapi.debug_mode(False):
        yield


CHARTS = (None, "allocation", "waits", "nodes", "shares", "power", "window", "nodes power", "nodes_at_power")
QUICK = (None, "nodes", "shares")


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    "chart", [chart if chart in QUICK else pytest.param(chart, marks=pytest.mark.long) for chart in CHARTS]
)
def test_every_chart_of_a_run_is_an_altair_chart(chart: str | None) -> None:
    drawn = reports.jobs().plot(chart)
    assert isinstance(drawn, altair.LayerChart)
    if chart in (None, "nodes"):
        assert "<svg" in needed("vl_convert").vegalite_to_svg(drawn.to_json())
    assert ((chart or "").startswith("nodes")) == ('"input": "range"' in drawn.to_json())  # a slider of time
    assert drawn.to_dict() == fs.plot(reports.jobs(), chart).to_dict()


def test_a_chart_is_what_altair_allows() -> None:
    with schemapi.debug_mode(True):
        reports.jobs().plot("nodes").to_dict()


def test_a_saved_run_is_drawn_as_well(tmp_path: Any) -> None:
    from fastsim.engine.result import Result

    reports.passing().save(tmp_path / "run")
    assert "Waits" not in Result.load(tmp_path / "run").plot("jct").to_json()
    for folder in (tmp_path / "run", str(tmp_path / "run")):
        assert isinstance(fs.plot(folder, "jct"), altair.LayerChart)


def test_fragmentation_and_power_of_nodes_have_their_own_scales() -> None:
    drawn = {
        name: reports.passing().plot(name).to_dict(validate=False)
        for name in ("nodes", "nodes fragmentation", "nodes power")
    }
    colours = [one["layer"][0]["encoding"]["color"] for one in drawn.values()]
    assert [colour["field"] for colour in colours] == ["y", "frag", "power"]
    assert [colour["title"] for colour in colours] == [
        "GPUs of a node in use", "GPUs of a node fragmented", "power of a node (W)"
    ]  # fmt: skip
    low, high = colours[2]["scale"]["domain"]
    assert 0 < low < high  # idle nodes draw something


def test_clusters_and_comparisons() -> None:
    cluster = fs.Cluster.preset("openb-all")
    for chart in CLUSTER:
        assert "<svg" in needed("vl_convert").vegalite_to_svg(cluster.plot(chart).to_json())
    counts = {row["kind"]: row["count"] for row in _rows(cluster.plot())}
    assert sum(counts.values()) == cluster.total_gpus and "no GPU" not in counts
    assert sum(row["count"] for row in _rows(cluster.plot("nodes"))) == len(cluster)
    comparison = fs.compare(reports.filling()[:2])
    assert fs.plot(comparison, "power", over="demand").to_dict() == comparison.plot("power").to_dict()


FROM: dict[str, Callable[[str], Any]] = {
    "result": lambda key: reports.jobs().plot(key),
    "results": lambda key: fs.plot([reports.jobs(), reports.jobs()], key),
    "comparison": lambda key: fs.compare([reports.jobs(), reports.jobs()]).plot(key),
    "report": lambda key: fs.plot(fs.report([reports.jobs()]), key),
}  # fmt: skip
"""The ways to a chart of runs."""


@pytest.mark.parametrize("way", FROM)
def test_every_chart_is_reached_in_every_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(series_plots, "drawn", lambda figure: drawn.append(figure.key))
    monkeypatch.setattr(plots, "drawn", lambda figure: drawn.append(figure.key))
    monkeypatch.setattr(fs.Comparison, "_states", lambda _, key, *__: drawn.append(key))
    for key in KEYS:
        try:
            FROM[way](key)
        except fs.ResultError as error:
            assert f"nothing recorded for {key}" in str(error), key
            drawn.append(key)
    assert drawn == list(KEYS)
    for wrong, told in (("wiat", "did you mean 'wait'"), ("nothing", f"expected one of {', '.join(KEYS)}")):
        with pytest.raises(fs.ScenarioError, match=told):
            FROM[way](wrong)


def test_seeds_are_one_curve_of_a_comparison(tmp_path: Any) -> None:
    comparison = fs.compare(reports.filling())
    curve = comparison.curve()
    assert curve["name"].unique(maintain_order=True).to_list() == ["fgd", "random"]
    assert ((curve["low"] <= curve["y"]) & (curve["y"] <= curve["high"]) & (curve["high"] <= 100)).all()
    kinds = [layer["mark"]["type"] for layer in comparison.plot("allocation").to_dict()["layer"]]
    assert kinds == ["area", "line", "point"]
    assert len(fs.compare(reports.filling(), ["a", "b", "c", "d"]).curve()["name"].unique()) == 4
    runs = [reports.jobs(), reports.jobs()]
    for suffix, first in ((".svg", b"<svg"), (".pdf", b"%PDF"), (".png", b"\x89PNG")):
        fs.compare(runs).plot("jct").save(tmp_path / f"jct{suffix}")
        assert (tmp_path / f"jct{suffix}").read_bytes().startswith(first)


def _rows(chart: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = next(iter(chart.to_dict()["datasets"].values()))
    return rows


def test_mistakes_are_one_line() -> None:
    with pytest.raises(fs.ScenarioError, match="did you mean 'wait'"):
        reports.jobs().plot("wiat")
    with pytest.raises(fs.ResultError, match=r"nothing recorded for shares, expected one of allocation, "):
        reports.passing().plot("shares")
    with pytest.raises(fs.ScenarioError, match="one of gpus, nodes"):
        fs.Cluster.uniform(nodes=1).plot("x")
    with pytest.raises(fs.ScenarioError, match="results, a comparison, a report or a cluster"):
        fs.plot(3)
    with pytest.raises(fs.ScenarioError, match="options for a comparison only"):
        fs.plot(reports.jobs(), over="time")
    bare = fs.simulate("openb:20", "synth:openb?pods=3&seed=1", record="summary")
    with pytest.raises(fs.ResultError, match="record='all'"):
        bare.plot()


def test_without_the_extra_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "altair":
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    for shown in (reports.jobs(), fs.Cluster.uniform(nodes=1), fs.compare([reports.jobs()])):
        with pytest.raises(fs.FastsimError, match=r'pip install "fastsim-gpu\[report\]"'):
            shown.plot()


def test_objects_show_small_tables_in_notebooks() -> None:
    cluster = fs.Cluster.preset("openb")
    sweep = fs.Sweep({"cluster": "gavel:2:2:2", "policy": ["fifo", "isolated"], "jobs": 6, "seed": [0, 1, 2, 3, 4, 5]})
    named = fs.compare(reports.filling()[:2], names=["<i>", "b"])
    shown: list[Any] = [reports.jobs(), named, cluster, fs.Workload.synth("openb", pods=5, seed=1), sweep]
    for one in shown:
        text = one._repr_html_()
        assert text.startswith("<table") and len(text) < 6000
        assert "background:transparent" in text and not re.search(r"#[0-9a-f]{3}|rgb", text)
        assert len(repr(one)) < 200 and "\n" not in repr(one), repr(one)
    assert "&lt;i&gt;" in named._repr_html_() and "<i>" not in named._repr_html_()
    assert "and 2 more rows" in sweep._repr_html_() and "12 runs over policy, seed" in repr(sweep)
    assert "4 models more" in repr(cluster) and "max_min_fairness" in repr(reports.jobs())
