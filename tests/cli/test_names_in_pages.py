"""Names that mean something to a browser are text in every page, picture, document and notebook view."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.experiments.all_figures import HEADS, all_figures, write_index
from fastsim.experiments.reproduce.reproduction import Measure, Reproduction, cell, cell_table, points
from tests.hostile_names import HARMLESS, NAMES, content_of, hostile_cluster, hostile_pods, hostile_runs
from tests.needs import needed
from tests.style.tree import ROOT, nodes, short, sources

needed("altair")
PROGRAMS = {"report": 2, "plot": 2, "monitor": 2, "alone": 2, "trace": 2, "compare": 2, "figures": 2}
"""Programs of a page: the library that draws, and the page's own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("names")
    hostile_runs(made)
    return made


def runs_of(folder: Path) -> list[str]:
    return [str(run) for run in hostile_runs(folder)]


def figures_page(folder: Path, name: str) -> str:
    """The page of a reproduction whose cells, curves and texts have the name."""
    what = Measure("1", name, name, 1)
    cells = [cell(what, name, name, at, 1.0, published=2.0) for at in (1, 2, 3)]
    curves = points(name, name, name, name, [1, 2], [3, 4])
    made = Reproduction("x", name, name, cell_table(cells), curves, 1, 1.0, name)
    return (made.write(folder / "made") / "index.html").read_text()


def index_page(folder: Path, name: str) -> str:
    """The index of all figures, with the name in every text."""
    one = all_figures()[0]
    row: dict[str, Any] = dict.fromkeys(HEADS, name) | {"paper": one.paper, "figure": one.figure}
    numbers = ("numbers", "cells", "same", "within", "outside", "indicative", "no reference")
    row |= {head: 1 for head in HEADS if head in numbers}
    return write_index(folder, pl.DataFrame([row])).read_text()


COMMANDS = {
    "report": "report {runs} --html page.html", "compare": "compare {runs} --html page.html",
    "plot": "plot jct_cdf {runs} -o page.html", "monitor": "monitor plot {runs} -o page.html",
    "alone": "monitor plot {first} -o page.html", "trace": "trace stats {workload} -o page.html",
}  # fmt: skip
"""Commands that write a page, by the kind of page."""


def words_of(command: str, folder: Path, tmp_path: Path) -> list[str]:
    """The words, with the runs and a file of pods in their places."""
    pods = tmp_path / "pods.parquet"
    hostile_pods(NAMES[0]).write(pods)
    places = {"{runs}": runs_of(folder), "{first}": runs_of(folder)[:1], "{workload}": [str(pods)]}
    return [one for word in command.split() for one in places.get(word, [word])]


@pytest.mark.parametrize("kind", COMMANDS)
def test_pages_of_verbs(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(words_of(COMMANDS[kind], folder, tmp_path)) == 0, capsys.readouterr().err
    check_page(Path("page.html").read_text(encoding="utf-8"), PROGRAMS[kind])


@pytest.mark.parametrize("kind", COMMANDS)
def test_pictures_of_verbs_are_xml_without_programs(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[kind].replace("--html page.html", "--svg made.svg" if kind == "compare" else "--svg .")
    words = words_of(command.replace("page.html", "made.svg"), folder, tmp_path)
    if kind == "report":  # every chart, of some names; the other kinds have all names
        words = [word for word in words if word not in runs_of(folder) or word in runs_of(folder)[::4]]
    assert exit_code(words) == 0, capsys.readouterr().err
    pictures = list(tmp_path.rglob("*.svg"))
    assert pictures
    for picture in pictures:
        tree = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
        for item in tree.iter():
            assert item.tag.rpartition("}")[2] not in ("script", "foreignObject", "image")
            assert not [key for key in item.attrib if key.lower().startswith("on") or key.endswith("href")]


def check_page(html: str, programs: int) -> None:
    """No tag of a name's, no handler, no program beside the page's own, and data that can be read."""
    content = content_of(html)
    assert content.tags <= HARMLESS and not content.handlers
    assert len(content.programs) == programs
    assert not [one for one in content.programs if "alert(1)" in one]


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_pages_of_explanations(place: int, folder: Path, tmp_path: Path) -> None:
    name, run = NAMES[place], fs.Result.load(hostile_runs(folder)[place])
    table = pl.DataFrame({name: [name], "why": [name]})
    report = fs.report(run, explained={name: table}, charts=["jct_cdf"])
    check_page(report.to_html(tmp_path / "page.html").read_text(encoding="utf-8"), PROGRAMS["report"])


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_reproductions(name: str, tmp_path: Path) -> None:
    check_page(figures_page(tmp_path, name), PROGRAMS["figures"])
    check_page(index_page(tmp_path, name), 0)


VIEWS: dict[str, Callable[[Path, str], Any]] = {
    "cluster": lambda run, name: hostile_cluster(name), "pod_rows": lambda run, name: hostile_pods(name),
    "result": lambda run, name: fs.Result.load(run),
    "comparison": lambda run, name: fs.compare([fs.Result.load(run)] * 2, [name, f"{name}2"]),
    "sweep": lambda run, name: fs.Sweep({"cluster": "openb:4", "workload": "synth:openb?pods=3", "seed": [0, 1]}, name),
}  # fmt: skip
"""Objects with a table in notebooks, made with a name."""


def with_text(*texts: str) -> list[Path]:
    """Modules of the package in which one of the texts stands."""
    return [path for path in sources("fastsim", suffix=".py") if any(text in path.read_text() for text in texts)]


def test_every_object_with_a_view_is_in_the_table() -> None:
    files = {
        short(path) for path in with_text("_repr_html_")
        for node in nodes(path) if isinstance(node, ast.FunctionDef) and node.name == "_repr_html_"
    }  # fmt: skip
    assert {Path(file).stem for file in files} == set(VIEWS)


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_views_in_notebooks(place: int, folder: Path) -> None:
    name, run = NAMES[place], hostile_runs(folder)[place]
    for made in VIEWS.values():
        content = content_of(made(run, name)._repr_html_())
        assert content.tags <= HARMLESS and not content.handlers and not content.programs


CHARTS: tuple[Callable[[str, fs.Result], Any], ...] = (
    lambda name, _: hostile_cluster(name).plot(), lambda name, _: hostile_cluster(name).plot("nodes"),
    lambda _, result: result.plot(), lambda name, result: of_two(name, result).plot(),
    lambda name, result: of_two(name, result).charts(),
    lambda name, result: of_two(name, result).plot().properties(title=name),
)  # fmt: skip
"""Charts of every object that has some, by a name and a run that has it everywhere."""


def of_two(name: str, result: fs.Result) -> fs.Comparison:
    return fs.compare([result, result], [name, f"{name}2"])


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_charts_in_notebooks_and_their_files(place: int, folder: Path, tmp_path: Path) -> None:
    name, result = NAMES[place], fs.Result.load(hostile_runs(folder)[place])
    for at in {place % len(CHARTS), (place + 3) % len(CHARTS)}:  # each kind has several names
        chart = CHARTS[at](name, result)
        chart.save(str(tmp_path / "chart.html"))
        shown = chart._repr_mimebundle_()
        assert isinstance(shown, dict)
        pages = [chart.to_html(), *shown.values(), (tmp_path / "chart.html").read_text()]
        if place == at:
            chart.save(str(tmp_path / "inline.html"), inline=True)
            pages.append((tmp_path / "inline.html").read_text())
        for html in pages:
            content = content_of(html)
            assert content.tags <= HARMLESS and not content.handlers
            assert not [one for one in content.programs if re.match(r"\s*alert\(1\)", one)]
            assert not any("<" in one.partition("var spec = ")[2].partition(";\n")[0] for one in content.programs)


TAG = re.compile(r"</?[a-z][a-z0-9]*[\s>]|<!--|<!DOCTYPE", re.IGNORECASE)
WRITERS = {
    "fastsim/experiments/all_figures.py": "index_page", "fastsim/experiments/reproduce/reproduction.py": "figures_page",
    "fastsim/foundation/displays.py": "VIEWS", "fastsim/reports/report_page.py": "report",
    "fastsim/reports/charts/html_page.py": "every page",
}  # fmt: skip
"""Modules that write tags, and what writes them above."""
SCRIPTED = re.compile(r"<script|<html|<!DOCTYPE", re.IGNORECASE)


GROUP_NAME = re.compile(r"\(\?P<\w+>")
"""The name of a group of a regular expression, which looks like a tag."""


def texts(path: Path) -> list[str]:
    """Texts in the code of a module that are no docstrings, without names of groups."""
    notes = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    return [
        GROUP_NAME.sub("", node.value) for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes
    ]  # fmt: skip


def test_every_module_that_writes_tags_is_tested_here_and_one_writes_scripts() -> None:
    found = {short(path): texts(path) for path in with_text("<") if TAG.search(path.read_text())}
    writers = {name for name, words in found.items() if any(TAG.search(word) for word in words)}
    assert writers == set(WRITERS)
    scripted = {name for name, words in found.items() if any(SCRIPTED.search(word) for word in words)}
    assert scripted == {"fastsim/reports/charts/html_page.py"}


def test_no_library_writes_a_page() -> None:
    assert with_text(".vegalite_to_html", ".vega_to_html", ".spec_to_html") == []
    assert (ROOT / "fastsim/reports/charts/html_page.py").is_file()
