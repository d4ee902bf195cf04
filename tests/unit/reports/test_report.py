"""Reports: folders of runs in; a page, Markdown and pictures out; one clear error for what is no run."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.reports.report import PAPER_WIDTH, loaded_runs
from tests import reports
from tests.needs import needed

needed("vl_convert")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs, one of them still being written."""
    folder = tmp_path_factory.mktemp("sweep")
    for place, result in enumerate(reports.filling()):
        result.save(folder / f"run-{place}")
    reports.passing().save(folder / ".run-9.partial")
    return folder


def test_a_folder_of_runs_is_all_of_them(sweep: Path) -> None:
    assert len(loaded_runs([sweep])) == 4 and len(loaded_runs([sweep / "run-0", sweep])) == 5
    report = fs.report(loaded_runs([sweep]))
    assert [one.name for one in report.series] == ["fgd", "random"]
    assert report.title == "2 policies compared" and report.subtitle.startswith("4 runs on 20 nodes, fastsim")
    assert fs.report([reports.passing()]).title == "best_fit: one policy on one workload"


def test_what_is_no_run_is_told(sweep: Path, tmp_path: Path) -> None:
    with pytest.raises(fs.ResultError, match=r"no readable run\.json"):
        loaded_runs([tmp_path])
    half = tmp_path / "half"
    half.mkdir()
    (half / "run.json").write_bytes((sweep / "run-0" / "run.json").read_bytes())
    with pytest.raises(fs.FastsimError, match=r"summary\.parquet"):
        loaded_runs([half])
    (half / "run.json").write_text("{")
    with pytest.raises(fs.ResultError, match=r"no readable run\.json"):
        loaded_runs([tmp_path])


def test_mistakes_are_named() -> None:
    run = reports.passing()
    with pytest.raises(fs.ScenarioError, match="at least one"):
        fs.report([])
    with pytest.raises(fs.ScenarioError, match="1, one for each"):
        fs.report([run], ["a", "b"])
    with pytest.raises(fs.ScenarioError, match="did you mean 'power'"):
        fs.report([run], charts=["powr"])
    with pytest.raises(fs.ScenarioError, match="later end"):
        fs.report([run], window=(5.0, 5.0))
    with pytest.raises(fs.ScenarioError, match=r"one of \.png, \.svg, \.pdf"):
        fs.report([run]).to_pictures("x", ".gif")


def test_files_are_the_same_each_time_and_appear_whole(tmp_path: Path) -> None:
    report = fs.report(reports.filling(), charts=["power"])
    page = report.to_html(tmp_path / "a.html").read_bytes()
    assert fs.report(reports.filling(), charts=["power"]).to_html(tmp_path / "b.html").read_bytes() == page
    with pytest.raises(fs.ResultError, match="cannot be written"):
        report.to_markdown(tmp_path / "no" / "a.md")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_markdown_links_its_pictures(tmp_path: Path) -> None:
    report = fs.report([reports.jobs()], charts=["jct", "window"], window=(0.0, 7200.0))
    pictures = [*report.to_pictures(tmp_path / "p", ".svg"), *report.to_pictures(tmp_path / "p", scale=0.5)]
    assert [path.name for path in pictures] == ["jct.svg", "window.svg", "jct.png", "window.png"]
    text = report.to_markdown(tmp_path / "a.md", pictures).read_text()
    assert "![jct](<p/jct.svg>)" in text and "```bibtex" in text and "workload sha256" in text
    assert "max_min_fairness" in text and pictures[3].read_bytes().startswith(b"\x89PNG")


def test_names_are_no_html_in_markdown(tmp_path: Path) -> None:
    run = reports.passing()
    hostile = dataclasses.replace(run, provenance={**run.provenance, "policy": "`<script>x</script>"},
                                  citations=("@misc{a}\n```\n<script>y</script>",))  # fmt: skip
    text = fs.report([hostile], ["<script>z</script>"]).to_markdown(tmp_path / "a.md").read_text()
    assert "<script>z" not in text and "&lt;script&gt;z" in text
    assert "- policy: `` `<script>x</script> ``" in text
    assert text.endswith("````bibtex\n@misc{a}\n```\n<script>y</script>\n````\n")


def test_explanations_are_tables_of_page_and_markdown(tmp_path: Path) -> None:
    columns = {"pod_id": [0, 0, 0], "attempt": [0, 0, 0], "node": ["b", "a|", "c"], "free": [None] * 3,
               "total": [1234.5678, 2.0, None], "rank": [2, 1, None], "chosen": [False, True, False],
               "gpu_ids": [[0, 1], [], None], "why": ["<b>", "most", "full"]}  # fmt: skip
    report = fs.report(reports.passing(), explained={"Why <0>": pl.DataFrame(columns)})
    (table,) = report.explained
    assert table.names == ["pod_id", "attempt", "node", "chosen", "why", "total", "rank", "gpu_ids"]
    assert table.rows[0] == ["0", "0", "a|", "yes", "most", "2", "1", ""]
    assert table.rows[1] == ["0", "0", "b", "no", "<b>", "1,234.6", "2", "0, 1"] and table.note == ""
    page = report.to_html(tmp_path / "a.html").read_text()
    assert "<h2>Why &lt;0&gt;</h2>" in page and '<td class="text">&lt;b&gt;</td>' in page
    assert "| 0 | 0 | a\\| | yes | most |" in report.to_markdown(tmp_path / "a.md").read_text()


def test_long_explanations_are_cut_and_say_so() -> None:
    nodes = pl.DataFrame({"pod_id": [0] * 30 + [1] * 30, "attempt": [0] * 60, "rank": [*range(1, 31)] * 2})
    (table,) = fs.report(reports.passing(), explained={"Why": nodes}).explained
    assert [row[2] for row in table.rows] == [*map(str, range(1, 11))] * 2 and table.note == "20 of 60 rows."
    (table,) = fs.report(reports.passing(), explained={"Why": pl.DataFrame({"place": range(999)})}).explained
    assert len(table.rows) == 200 and table.note == "200 of 999 rows."


@pytest.mark.parametrize("wrong", [[1], pl.DataFrame(), {"Why": "x"}, {1: pl.DataFrame()}])
def test_what_is_no_explanation_is_refused(wrong: Any) -> None:
    with pytest.raises(fs.ScenarioError, match="expected a mapping of headings to tables of explain"):
        fs.report(reports.passing(), explained=wrong)


def test_runs_of_a_sweep_with_two_axes_are_found(tmp_path: Path) -> None:
    texts = {"cluster": "gavel:2:2:2", "jobs": 6, "record": "all"}
    fs.Sweep({**texts, "policy": ["fifo", "isolated"], "seed": [0, 1]}).run(tmp_path)
    runs = loaded_runs([tmp_path])
    assert [run.provenance["policy"] for run in runs] == ["fifo", "fifo", "isolated", "isolated"]
    assert fs.report(runs).figures


def test_pictures_fit_the_columns_of_a_paper(tmp_path: Path) -> None:
    report = fs.report(list(reports.filling()), charts=["allocation", "classes"])
    for columns, points in PAPER_WIDTH.items():
        file = report.to_pictures(tmp_path, ".pdf", columns=columns)[0]
        box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", file.read_bytes())
        assert box is not None and float(box[1]) == points and file.name == "allocation.pdf"
        assert b"/FontDescriptor" in file.read_bytes()  # a font that is not there would leave no letters
    with pytest.raises(fs.ScenarioError, match="1 or 2"):
        report.to_pictures(tmp_path, ".svg", columns=3)
    with pytest.raises(fs.ScenarioError, match=r"one of \.png, \.svg, \.pdf"):
        report.to_pictures(tmp_path, ".eps")
