"""Runs of objects in memory: what reads a run works from the result and from its folder, as for runs of texts."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.cluster.cluster import Cluster
from fastsim.engine.result import Result
from fastsim.experiments.isolated_runs import saved_run_ratios
from fastsim.foundation.written_folder import KEPT_INPUTS
from fastsim.scenario import kept_inputs, run_inputs
from tests.engines import RUNS

VERBS = {
    "audit": ("audit", "{run}"),
    "report": ("report", "{run}", "--markdown", "{out}.md"),
    "compare": ("compare", "{run}", "{run}"),
    "compare --why": ("compare", "{run}", "{run}", "--why"),
    "export table": ("export", "table", "{run}", "jobs", "-o", "{out}.csv"),
}
"""Verbs that read a run of any engine."""


@cache
def scenario_of_objects(engine: str) -> fs.Scenario:
    """The small run of this engine with its cluster and workload as objects."""
    fields: dict[str, Any] = dict(RUNS[engine])
    cluster = Cluster.from_text(fields.pop("cluster"))
    drawn = run_inputs.workload_from(fields.pop("workload"), cluster).workload
    workload = fs.Workload.from_arrow(drawn.table())
    workload.metadata |= drawn.metadata
    return fs.Scenario(cluster, workload, **fields)


@cache
def run_of_objects(engine: str) -> Result:
    """The result of :func:`scenario_of_objects`."""
    return fs.simulate_many([scenario_of_objects(engine)])[0]


def files_of(folder: Path) -> dict[str, bytes]:
    """The inputs that a folder keeps."""
    return {path.stem: path.read_bytes() for path in folder.glob("*.parquet") if path.stem in KEPT_INPUTS}


@pytest.mark.parametrize("engine", RUNS)
def test_every_reader_takes_the_result_and_its_folder(engine: str, tmp_path: Path) -> None:
    result = run_of_objects(engine)
    folder = result.save(tmp_path / "run")
    loaded = Result.load(folder)
    copied = Result.load(loaded.save(tmp_path / "copy"))
    assert loaded == result == copied == pickle.loads(pickle.dumps(result))
    audits = [one.audit() for one in (result, loaded, copied)]
    assert audits[0].checked > 0 and not any(audit.differences for audit in audits)
    assert len({audit.checked for audit in audits}) == 1
    assert fs.paired_jobs(loaded, result).jobs.height == result.jobs["jct_s"].count()
    names = {"run": str(folder), "out": str(tmp_path / "out")}
    for verb, words in VERBS.items():
        assert exit_code([word.format(**names) for word in words]) == 0, verb


@pytest.mark.parametrize("engine", ["pods", "shares", "adaptive"])
def test_jobs_alone_are_run_from_a_folder(engine: str, tmp_path: Path) -> None:
    text = fs.simulate(**RUNS[engine]).save(tmp_path / "text")
    folder = run_of_objects(engine).save(tmp_path / "objects")
    if engine == "pods":  # pods that share GPUs have no fair part
        with pytest.raises(fs.FastsimError) as of_text:
            saved_run_ratios(text)
        with pytest.raises(type(of_text.value)):
            saved_run_ratios(folder)
    else:
        assert saved_run_ratios(folder).equals(saved_run_ratios(text))


@pytest.mark.parametrize("engine", RUNS)
def test_a_streamed_run_keeps_the_same_files(engine: str, tmp_path: Path) -> None:
    scenario = scenario_of_objects(engine)
    fs.simulate_many([scenario.with_(out=str(tmp_path / "streamed"))])
    run_of_objects(engine).save(tmp_path / "saved")
    streamed, saved = (files_of(tmp_path / name) for name in ("streamed", "saved"))
    assert {*streamed} == {"cluster", "workload"} and streamed == saved


def test_large_workloads_are_kept_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_inputs, "SMALL_ROWS", 3)
    scenario = scenario_of_objects("pods")
    result = fs.simulate(scenario.cluster, scenario.workload, "fgd", out=tmp_path / "run")
    assert not (tmp_path / "run" / "workload.parquet").exists()
    with pytest.raises(fs.InputError, match=r"workload: found an object .* give it: workload=\.\.\."):
        Result.load(tmp_path / "run").audit()
    assert not Result.load(tmp_path / "run").origin(workload=scenario.workload).problems()
    fs.simulate(scenario.cluster, scenario.workload, "fgd", out=tmp_path / "kept", keep_inputs=True)
    for folder in (tmp_path / "kept", result.save(tmp_path / "saved", keep_inputs=True)):
        assert not Result.load(folder).audit().differences


def test_jobs_that_are_drawn_without_end_are_not_kept(tmp_path: Path) -> None:
    folder = fs.simulate("gavel:2:2:2", fs.Workload.synth("gavel", jobs=4, rate_per_hour=2), "las").save(
        tmp_path / "run"
    )
    with pytest.raises(fs.InputError, match="workload: found an object in memory that the folder does not keep"):
        Result.load(folder).audit()


def test_models_of_an_own_catalogue_come_back(tmp_path: Path) -> None:
    known = fs.Catalog.default().gpu
    catalog = fs.Catalog.default().extended(gpu={"Own9": known["T4"]})
    cluster = fs.Cluster.uniform(nodes=2, gpu="Own9", gpus=2, catalog=catalog)
    result = fs.simulate(cluster, "synth:openb?pods=4&seed=1", "fgd")
    loaded = Result.load(result.save(tmp_path / "run"))
    assert not loaded.audit().differences and loaded.audit().checked == result.audit().checked


def test_runs_of_texts_keep_no_inputs(tmp_path: Path) -> None:
    folder = fs.simulate(**RUNS["pods"]).save(tmp_path / "run")
    assert not any((folder / f"{name}.parquet").exists() for name in KEPT_INPUTS)
