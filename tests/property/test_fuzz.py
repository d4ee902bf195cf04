"""A short form of the fuzzers: the same cases each time, none of which may end in a traceback, a signal or no end."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from fastsim.cli.grammar import option_defaults
from fastsim.cluster.cluster import Cluster
from fastsim.foundation import csv_table
from fastsim.reports import report_table, text_tables
from fastsim.reports.charts import html_page
from fastsim.scenario import user_code
from fastsim.telemetry import files, openmetrics
from fastsim.workload import Workload
from tests.fuzz import relations, small_runs
from tests.fuzz.targets import TARGETS
from tests.fuzz.trial import Trial
from tests.fuzz.worker import Worker
from tests.needs import needed
from tests.strategies import scenarios_per_run


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    one = Worker(TARGETS)
    yield one
    one.close()


@pytest.mark.spread(10)
@pytest.mark.parametrize("target", TARGETS)
def test_no_case_ends_otherwise_than_it_may(target: str, worker: Worker) -> None:
    if "YAML" in target or target == "names in Kubernetes objects":
        needed("yaml")
    _, findings = worker.lot(target, 0, scenarios_per_run(40))
    assert not findings, "\n".join(map(str, findings))


def test_a_finding_names_the_command_that_repeats_it() -> None:
    lost = Worker({"kill": _killer})
    try:
        outcomes, [finding] = lost.lot("kill", 5, 3)
    finally:
        lost.close()
    assert finding.seed == 6 and finding.what == "the process ended with -9" and outcomes == ["fine"]
    assert str(finding).endswith("python -m tests.fuzz --only 'kill' --first 6 --cases 1")


def _killer() -> Trial:
    return _killed_at_six


def _killed_at_six(seed: int) -> str:
    if seed == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return "fine"


def first_finding(target: str, most: int = 200) -> str:
    """What a target says about the first of its cases that is a finding; empty if none is."""
    tried = TARGETS[target]()
    for seed in range(most):
        try:
            tried(seed)
        except Exception as error:
            return f"{seed}: {error!r}"
    return ""


@pytest.mark.parametrize("reader", ["a provenance", "a sweep", "a checkpoint", "defaults of options"])
def test_a_guard_that_searches_the_text_of_a_policy_is_found(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "ANSWERS", [lambda text: bool(re.search(r"\bpython\b", text))])
    monkeypatch.setattr(option_defaults, "_imports_code", lambda text: bool(re.search(r"\bpython\b", str(text))))
    assert re.search("looked for|was taken", first_finding(f"code in {reader}"))


PLANTED: dict[str, tuple[object, str, Callable[..., object]]] = {
    "chart pages": (html_page, "script_json", lambda document: document),
    "report pages": (html_page, "escape", lambda text: text),
    "LaTeX": (report_table, "latex_text", lambda text: text),
    "exported CSV": (csv_table, "without_formulas", lambda frame: frame),
    "OpenMetrics": (openmetrics, "escaped", lambda value: "" if value is None else str(value).replace("\n", " ")),
    "series of readings": (files, "_untaken", lambda name, taken: name[:99]),
    "terminals": (text_tables, "on_one_line", lambda value, most: str(value)),
}  # fmt: skip
"""By writer: the function that keeps names what they are, and one that does not."""


@pytest.mark.parametrize("writer", PLANTED)
def test_a_name_that_is_written_as_it_is_is_found(writer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[writer])
    assert first_finding(f"names in {writer}")


def numbered_anew(frame: pl.DataFrame, *_: object, **__: object) -> Workload:
    """The workload of a table whose ids count from 0."""
    return Workload.from_polars(frame.sort("submit_s").with_columns(pod_id=pl.int_range(pl.len())), origin="keep")


@pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
@pytest.mark.parametrize(("relation", "function"), [("shuffled", "from_polars"), ("renamed", "workload_of")])
def test_ids_that_are_numbered_anew_are_found(
    relation: str, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(1)
    scenario = small_runs.pods(draw).with_(cluster=Cluster.uniform(nodes=2, gpu="T4", gpus=4), maintenance=None)
    relations.RELATIONS[relation][0]("pods", scenario, draw, tmp_path)
    own = numbered_anew if function == "workload_of" else type("Own", (), {"from_polars": staticmethod(numbered_anew)})
    monkeypatch.setattr(relations, "workload_of" if function == "workload_of" else "Workload", own)
    with pytest.raises(AssertionError):
        relations.RELATIONS[relation][0]("pods", scenario, draw, tmp_path)
