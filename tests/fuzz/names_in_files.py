"""Hostile names in everything that fastsim writes: each reader finds the same names, and nothing but names."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa

import fastsim as fs
from fastsim.decisions.explain_text import write_csv
from fastsim.errors import on_one_line
from fastsim.experiments.exported_tables import table_bytes
from fastsim.experiments.sweep.sweep import sweep_of
from fastsim.reports.charts import chart_files
from fastsim.reports.charts.chart_files import drawn_picture, written_chart
from fastsim.reports.charts.chrome_trace import written_trace
from fastsim.reports.charts.html_page import chart_page
from fastsim.reports.charts.series import series_of
from fastsim.reports.kubernetes.export import bound_pods, node_objects, write_objects
from fastsim.reports.report import Report, report
from fastsim.reports.report_charts import KEYS
from fastsim.reports.report_page import report_page
from fastsim.reports.text_tables import comparison_text, text_table
from fastsim.telemetry.exporter import Record
from fastsim.telemetry.files import write_csv_files
from fastsim.telemetry.openmetrics import read_files, write_files
from fastsim.telemetry.readings_table import SCHEMA
from tests.fuzz import names, trial
from tests.fuzz.trial import Trial
from tests.hostile_names import HARMLESS, content_of, hostile_cluster, hostile_pods

Write = Callable[[random.Random, Path], object]
LATEX = {
    "textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^", "textbar{}": "|",
    **{sign: sign for sign in "&%$#_{}"},
}  # fmt: skip
"""Commands of LaTeX that print a sign."""


@cache
def base() -> fs.Result:
    """The run whose names are replaced."""
    return names.made_run()


def one_run(draw: random.Random) -> tuple[fs.Result, str]:
    """A run, and the name that it has everywhere."""
    name = names.name(draw)
    return names.renamed(base(), name), name


def words(text: str) -> list[str]:
    """The words of a text, for writers that keep a name on one line."""
    return text.split()


def require_text(html: str, programs: int, *shown: str) -> Any:
    """AssertionError unless a page has tags of ours only, so many programs, and these names in its text."""
    content = content_of(html)
    assert content.tags <= HARMLESS, content.tags - HARMLESS
    assert not content.handlers and len(content.programs) == programs, (content.handlers, len(content.programs))
    text = "".join(content.text.split())
    for name in shown:
        assert "".join(words(name)) in text, f"{name!r} is not shown"
    return content


def chart_pages(draw: random.Random, folder: Path) -> None:
    """The page of a chart whose data and title have names."""
    one, other = names.several(2, draw)
    document = json.dumps({one: [other]}, ensure_ascii=draw.random() < 0.5)
    content = require_text(chart_page(document, one, "let drawn;"), 2)
    assert content.data == {"spec": {one: [other]}} and words(content.title) == words(one)


def views(draw: random.Random, folder: Path) -> None:
    """Views of notebooks."""
    result, name = one_run(draw)
    shown = draw.choice(("cluster", "workload", "result", "comparison", "sweep"))
    made: dict[str, Callable[[], Any]] = {
        "cluster": lambda: hostile_cluster(name), "workload": lambda: hostile_pods(name), "result": lambda: result,
        "comparison": lambda: fs.compare([result, result], names.several(2, draw)),
        "sweep": lambda: fs.Sweep({"cluster": "openb:4", "workload": "synth:openb?pods=3", "seed": [0, 1]}, name),
    }  # fmt: skip
    view = made[shown]()
    expected = view.names if shown == "comparison" else [name] if shown == "cluster" else []
    require_text(view._repr_html_(), 0, *(one for one in expected if len(one) < 70))


def report_pages(draw: random.Random, folder: Path) -> None:
    """The page of a report with one chart."""
    (result, _), labels = one_run(draw), names.several(2, draw)
    if draw.random() < 0.5:
        made = Report(tuple(series_of([result], labels[:1])), None, (draw.choice(KEYS),))
        labels = labels[:1]
    else:
        made = Report(tuple(series_of([result, result], labels)), None, (draw.choice(KEYS),))
    html = report_page(made, "let drawn;")
    content = require_text(html, 1 + bool(made.figures), *labels)
    assert words(content.title) == words(made.title)
    assert not made.figures or {"figures"} == set(content.data["figures"])


def markdown(draw: random.Random, folder: Path) -> None:
    """The document of a report: a row for each run, whose first cell is its name."""
    (result, _), labels = one_run(draw), names.several(2, draw)
    path = report([result, result], labels).to_markdown(folder / "page.md")
    lines = path.read_text(encoding="utf-8").split("\n")
    lines = lines[: lines.index("## Where this comes from")]
    rows = [markdown_cells(line) for line in lines if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1, rows
    assert [row[0] for row in rows[2:]] == [" ".join(words(label)) for label in labels], rows
    assert not [line for line in lines if "<" in line]


def markdown_cells(line: str) -> list[str]:
    """The cells of a row of a table in Markdown, as a reader shows them."""
    cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)
    assert "\r" not in line and cells[0] == "" and cells[-1] == ""
    plain = [re.sub(r"\\([\\`|\[\]])", r"\1", cell[1:-1] if cell.startswith(" ") else cell) for cell in cells[1:-1]]
    return [cell.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for cell in plain]


def latex_cells(line: str) -> list[str]:
    """The cells of a row of a tabular, as LaTeX prints them; AssertionError at anything but signs."""
    assert line.endswith(" \\\\"), line
    assert line.isprintable() or not re.search(r"[\x00-\x1f\x7f]", line), f"control characters in {line!r}"
    cells, cell, at, body = [], [""], 0, line.removesuffix(" \\\\")
    math = False
    while at < len(body):
        sign = body[at]
        if sign == "\\":
            command = next((word for word in (*LATEX, "pm") if body.startswith(word, at + 1)), None)
            assert command, f"{body[at : at + 20]!r} in {line!r}"
            cell.append(LATEX.get(command, "±"))
            at += len(command)
        elif sign == "&":
            cells.append("".join(cell).strip())
            cell = []
        elif sign == "$":
            math = not math
        else:
            assert sign not in "%#_{}~^" and (math or sign not in "<>|"), f"{sign} in {line!r}"
            cell.append(sign)
        at += 1
    assert not math, line
    return [*cells, "".join(cell).strip()]


def latex(draw: random.Random, folder: Path) -> None:
    """The tabular of a report."""
    (result, _), labels = one_run(draw), names.several(2, draw)
    path = report([result, result], labels).to_latex(folder / "table.tex")
    require_rows(path.read_text(encoding="utf-8"), labels)


def require_rows(text: str, labels: list[str]) -> None:
    """AssertionError unless the body of a tabular has a row for each name, with the name first."""
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0]
    found = [latex_cells(line) for line in body.split("\n")[:-1]]
    assert len({len(row) for row in found}) == 1, found
    assert [words(row[0]) for row in found] == [words(latex_name(label)) for label in labels], (found, labels)


def latex_name(text: str) -> str:
    """The name without signs that LaTeX has no letter for."""
    return re.sub(r"[\x00-\x08\x0e-\x1f\x7f]", lambda sign: ascii(sign[0])[1:-1], " ".join(text.split()))


def exported_latex(draw: random.Random, folder: Path) -> None:
    """An exported table as a tabular."""
    labels = names.several(3, draw)
    frame = pl.DataFrame({"node": labels, "n": [1.5, 2.0, None]})
    require_rows(table_bytes(frame, "latex").decode(), labels)


def csv_rows(content: bytes) -> list[list[str]]:
    """The rows of a CSV file."""
    return list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))


def cell_of(name: str) -> str:
    """The name in a table for a spreadsheet, which runs nothing."""
    return f"'{name}" if name[0] in "=+-@\t\r" else name


def exported_csv(draw: random.Random, folder: Path) -> None:
    """Tables for spreadsheets: of a report, of a run, of an explanation."""
    (result, name), labels = one_run(draw), names.several(2, draw)
    path = report([result, result], labels).to_csv(folder / "table.csv")
    rows = csv_rows(path.read_bytes())
    assert [row[0] for row in rows[1:]] == [cell_of(label) for label in labels], rows
    nodes = result.placements["node"].to_list()
    rows = csv_rows(table_bytes(result.placements, "csv"))
    assert [row[rows[0].index("node")] for row in rows[1:]] == [cell_of(node or "") if node else "" for node in nodes]
    write_csv(pl.DataFrame({"node": [name], "gpu_ids": [[0, 1]]}), folder / "why.csv")
    assert csv_rows((folder / "why.csv").read_bytes())[1:] == [[cell_of(name), "0 1"]]


def own_tables(draw: random.Random, folder: Path) -> None:
    """Tables of clusters, workloads and runs that fastsim reads again."""
    name = names.name(draw)
    cluster, pods = hostile_cluster(name), hostile_pods(name)
    cluster.to_parquet(folder / "nodes.parquet")
    cluster.to_csv(folder / "nodes.csv")
    for read in (fs.Cluster.from_parquet(folder / "nodes.parquet"), fs.Cluster.from_csv(folder / "nodes.csv")):
        assert read.nodes.column("name").to_pylist() == cluster.nodes.column("name").to_pylist()
        assert read.nodes.column("gpu_model").to_pylist() == cluster.nodes.column("gpu_model").to_pylist()
    pods.write(folder / "pods.parquet")
    assert fs.Workload.scan(folder / "pods.parquet").table().to_pylist() == pods.table().to_pylist()


def saved_runs(draw: random.Random, folder: Path) -> None:
    """A saved run, whose record and tables have names."""
    result, name = one_run(draw)
    if draw.random() < 0.2:
        name = names.name(draw, surrogates=True)
        result = fs.Result(result.frames, {**result.provenance, "policy": name}, result.timing, (name,))
    result.save(folder / "run", overwrite=True)
    read = fs.Result.load(folder / "run")
    assert read.provenance["policy"] == name and list(read.citations) == [name]
    assert read.placements.equals(result.placements) and read.telemetry.equals(result.telemetry)


def scenarios(draw: random.Random, folder: Path) -> None:
    """A scenario as JSON and back."""
    name = names.name(draw, surrogates=True)
    made = fs.Scenario("openb:2", "synth:openb?pods=2", "fgd", name=name)
    assert fs.Scenario.from_json(json.dumps(made.to_dict())).to_dict() == made.to_dict() and made.id


def kubernetes(draw: random.Random, folder: Path) -> None:
    """Kubernetes objects in YAML and JSON."""
    import yaml

    result, name = one_run(draw)
    cluster, pods = hostile_cluster(name), hostile_pods(name)
    objects = [*node_objects(cluster), *bound_pods(result, pods, every=True)]
    path = folder / draw.choice(("objects.yaml", "objects.json"))
    write_objects(objects, path)
    text = path.read_text(encoding="utf-8")
    read = json.loads(text)["items"] if path.suffix == ".json" else list(yaml.load_all(text, yaml.CSafeLoader))
    assert read == objects
    assert [item["metadata"]["name"] for item in read[:4]] == [f"{name}{number}" for number in range(4)]
    assert {item["metadata"]["labels"]["kai.scheduler/queue"] for item in read[4:]} == {name}
    assert {item["spec"]["nodeName"] for item in read[4:]} == set(result.placements["node"].drop_nulls())


def readings(draw: random.Random) -> pa.Table:
    """Readings of two devices whose every word is a name."""
    rows = []
    for one in range(2):
        node, model, pod, space, box, uuid = (names.name(draw) for _ in range(6))
        row = {"node": node, "gpu_uuid": uuid, "gpu_index": one, "model": model, "namespace": space, "pod": pod,
               "container": box}  # fmt: skip
        rows += [row | {"ts": 1000 * at, "metric": metric, "value": at + 0.5}
                 for metric in ("power_w", "util_pct") for at in (1, 2)]  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA)


def sorted_rows(table: pa.Table) -> list[str]:
    """The rows of a table in an order of their own."""
    return sorted(map(repr, table.to_pylist()))


def openmetrics(draw: random.Random, folder: Path) -> None:
    """Readings as OpenMetrics and back, in a file and from an exporter."""
    table = readings(draw)
    shutil.rmtree(folder / "om", ignore_errors=True)
    paths = write_files(table, folder / "om")
    assert sorted_rows(read_files(*paths)) == sorted_rows(table)
    served = folder / "served.om"
    served.write_text(Record(table).text(1.0), encoding="utf-8", newline="\n")
    last = table.filter(pa.compute.equal(table["value"], 2.5)).drop_columns("ts")
    assert sorted_rows(read_files(served).drop_columns("ts")) == sorted_rows(last)


def series_files(draw: random.Random, folder: Path) -> None:
    """Readings as a CSV file for each series: as many files as series, all of them in the folder."""
    table = readings(draw)
    place = folder / "series"
    shutil.rmtree(place, ignore_errors=True)
    paths = write_csv_files(table, place)
    assert len(set(paths)) == 4 and set(paths) == set(place.iterdir())
    assert all(len(csv_rows(path.read_bytes())) == 3 for path in paths)


def chrome_trace(draw: random.Random, folder: Path) -> None:
    """A trace for Perfetto."""
    result, name = one_run(draw)
    path, _, _ = written_trace(result, folder / "trace.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    nodes = {event["args"]["name"] for event in record["traceEvents"] if event["name"] == "process_name"}
    assert nodes == {"cluster", *result.placements["node"].drop_nulls()} and record["otherData"]["policy"] == name


def terminal(draw: random.Random, folder: Path) -> None:
    """Tables on a terminal: names as they are, on one line, and no sign that moves its cursor."""
    label = names.name(draw)
    labels = draw.sample([label, label, f"{label}{draw.choice(names.NEAR)}"], 3)
    comparison = fs.compare([names.renamed(base(), one) for one in labels])
    with patch.dict(os.environ, {"COLUMNS": "100000"}):
        texts = [comparison_text(comparison.table), text_table(comparison.table, [("name", "run")], ["name"])]
    for text in texts:
        lines = text.removesuffix("\n").split("\n")
        assert all(line.isprintable() for line in lines), f"unprintable: {text[:300]!r}"
        assert len(set(comparison.names)) == 3
        for label in comparison.names:
            shown = on_one_line(label, len(label)).strip()
            assert any(line.strip().startswith(shown) for line in lines), f"{shown!r} is not in {text[:400]!r}"


def sweeps(draw: random.Random, folder: Path) -> None:
    """Names of the runs of a sweep, which are folders."""
    values = names.several(2, draw)
    keys = {"cluster": "openb:2", "workload": "synth:openb?pods=2", "vars": {"x": values}, "seed": [1, 2]}
    runs = sweep_of(keys)
    made = [run.name for run in runs]
    assert len({name.lower() for name in made}) == 4
    for name in made:
        parts = Path(name).parts
        assert ".." not in parts and not Path(name).is_absolute() and "\x00" not in name
        (folder / "sweep" / name).mkdir(parents=True, exist_ok=True)


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a tree."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *texts_of(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def pictures(draw: random.Random, folder: Path) -> None:
    """What is given to the library that draws, which has no room in a worker: no sign at which it ends the process."""
    (result, _), labels = one_run(draw), names.several(2, draw)
    given: list[str] = []
    forms = ("vegalite_to_svg", "vegalite_to_png", "vegalite_to_pdf")

    def drawn(spec: str, **_: Any) -> str:
        given.append(spec)
        return ""

    drawer = SimpleNamespace(**dict.fromkeys(forms, drawn))
    with patch.object(chart_files, "picturing", lambda: drawer):
        drawn_picture(json.dumps({"title": labels}, ensure_ascii=draw.random() < 0.5), draw.choice((".svg", ".pdf")))
        written_chart(fs.compare([result, result], labels).plot(), folder / draw.choice(("chart.svg", "chart.png")))
    assert len(given) == 2
    for text in (text for spec in given for text in texts_of(json.loads(spec))):
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text), repr(text)


WRITERS: dict[str, Write] = {
    "chart pages": chart_pages, "notebook views": views, "report pages": report_pages, "Markdown": markdown,
    "LaTeX": latex, "exported LaTeX": exported_latex, "exported CSV": exported_csv, "tables of inputs": own_tables,
    "saved runs": saved_runs, "scenarios": scenarios, "Kubernetes objects": kubernetes, "OpenMetrics": openmetrics,
    "series of readings": series_files, "Chrome traces": chrome_trace, "terminals": terminal, "sweeps": sweeps,
    "pictures": pictures,
}  # fmt: skip
"""What is written."""


def prepare(write: Write) -> Trial:
    """A trial of one writer."""
    folder = trial.folder("names")
    return trial.of(partial(_drawn), partial(_written, write, folder))


def _drawn(draw: random.Random) -> random.Random:
    return draw


def _written(write: Write, folder: Path, draw: random.Random) -> None:
    write(draw, folder)


TARGETS: dict[str, Callable[[], Trial]] = {
    f"names in {name}": partial(prepare, write) for name, write in WRITERS.items()
}
"""Trials by name."""
