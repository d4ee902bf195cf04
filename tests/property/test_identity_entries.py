"""Rows keep their identity whoever makes or reads them: every maker of workloads, every verb, every public name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.errors import InputError
from fastsim.telemetry.jobs_from_readings import jobs_of
from fastsim.telemetry.readings_table import ordered, write
from fastsim.workload import Workload
from fastsim.workload.importers.running_pods import with_running
from fastsim.workload.oversized_pods import JobOversized, fitting
from fastsim.workload.texts import PUBLISHED
from tests.hostile_files import verbs
from tests.objects import node, pod, written
from tests.property import test_identity as identity
from tests.property.test_identity import IDS, LOADS, ORDERS, RECORDED, table
from tests.style.tree import ROOT, functions, short
from tests.telemetry import table as readings
from tests.unit.kubernetes.test_arrival_order import running

ENTRY, LOAD, SOURCE, DRAWN = "ways in", "changed loads", "recorded traces", "rows are drawn, and no source has names"
MAKERS = {
    "workload/workload.py": {
        ENTRY: {"of", "from_text", "from_parquet", "from_arrow", "from_csv", "from_polars", "from_pandas"},
        SOURCE: {"from_openb", "from_gavel", "from_sia", "from_synergy", "from_philly", "from_trace",
                 "from_kubernetes"},
        DRAWN: {"synth"}, LOAD: {"ordered", "shuffled", "tune", "inflated"},
        "test_jobs_that_fit_keep_their_ids": {"fitting"},
    },
    "workload/load_tuning.py": {LOAD: {"ordered", "shuffled", "tuned", "inflated"}},
    "workload/pod_rows.py": {ENTRY: {"scan"}},
    "workload/mapped_pods.py": {ENTRY: {"import_table", "pods_of"}, SOURCE: {"table_of"}},
    "workload/texts.py": {ENTRY: {"in_memory"}, SOURCE: {"import_trace", "open", "opened"}},
    "workload/oversized_pods.py": {"test_jobs_that_fit_keep_their_ids": {"fitting"}},
    **{f"workload/{'published_traces' if kind in PUBLISHED else 'importers'}/{kind}.py": {SOURCE: {"import_jobs"}}
       for kind in RECORDED},
    "workload/importers/openb.py": {SOURCE: {"import_pods"}},
    "workload/importers/sia.py": {SOURCE: {"import_jobs", "job_list"}},
    "workload/importers/kubernetes.py": {"test_gangs_of_objects_have_the_names_of_their_owners": {
        "import_objects", "import_pods", "pods_of_rows", "snapshot_pods", "trace_of"}},
    "workload/importers/running_pods.py": {"test_pods_beside_those_that_run_are_told_apart": {"with_running"}},
    **{f"workload/generators/{kind}.py": {DRAWN: {f"synth_{kind}"}} for kind in ("sia", "synergy")},
    "workload/generators/detectors.py": {DRAWN: {"detectors"}},
    "workload/generators/gavel.py": {DRAWN: {"synth_gavel", "synth_gavel_trace"}},
    "workload/generators/openb.py": {DRAWN: {"synth_openb"}},
    "experiments/reproduce/fgd_protocol.py": {LOAD: {"offered"}},
    "experiments/assumed_durations.py": {"the same pods, in test_assumed_durations": {"ending"}},
    "telemetry/kube_state.py": {"pods by namespace and name, in test_kube_state": {"pods_of"}},
    "reports/kubernetes/export.py": {"the workload of a saved run as it was": {"saved_run"}},
}  # fmt: skip
"""Public functions that make workloads, by module and by what is tested with them; a text of others says why not."""
PODS = {
    **{
        f"import {kind}": SOURCE
        for kind in ("openb", "gavel", "sia", "pollux", "synergy", "philly", "kubernetes", *PUBLISHED)
    },
    **{f"synth {kind}": DRAWN for kind in ("openb", "kubernetes", "gavel", "sia", "synergy")},
    "import csv": "test_verbs_write_the_ids_of_their_source",
    "monitor jobs": "test_jobs_of_readings_have_one_name_each",
    "export table": "test_jobs_keep_their_names",
    "explain": "test_explain_takes_an_id_below_zero",
    "export kubernetes": "pods by their ids and names, in test_export",
    "mig": "counts of pods alone, in test_mig_layouts",
    "consolidate": "pods by their names, in test_consolidation",
    **dict.fromkeys(("run", "resume", "fork", "demo"), "runs, whose tables test_identity joins"),
}
"""Verbs that write, show or take rows of pods, and what is tested with them."""
OTHERS = {
    "sweep run", "sweep init", "sweep stats", "sweep knee", "reproduce", "compare", "report", "plot", "audit",
    "fairness", "tenants", "import gavel-rates", "import simon", "trace lint", "trace stats", "profile synergy",
    "profile gavel",
    "monitor serve", "monitor export", "monitor import", "monitor plot", "monitor dashboard", "plan", "export sia-log",
    "serve-extender", "list", "describe", "new-policy", "guide",
}  # fmt: skip
"""Verbs whose output has no row for each pod, or the names of a format of another program."""
NAMES = {
    "Workload": ENTRY,
    "simulate": "runs, whose tables test_identity joins",
    "simulate_many": "the same runs",
    "resume": "the same runs",
    "fork": "the same runs",
    "Result": "the same tables",
    "explain": "test_explain_takes_an_id_below_zero",
    "waiting_pods": "pods by their ids and names, in test_waiting_pods",
    "simulate_pool": "test_a_pool_tells_of_own_jobs",
    "paired_jobs": "joined by id, in test_paired_jobs",
    "PairedJobs": "joined by id, in test_paired_jobs",
}
"""Public names that take or return rows of pods."""
NO_ROWS = {
    "Catalog", "Cluster", "ColumnIgnored", "Comparison", "Deschedule", "FastsimError", "InputError", "NeverTried",
    "Oracle", "PodTooLarge", "PolicyError", "Prices", "Report", "ResultError", "Scenario", "ScenarioError",
    "Sensitivity", "SolverError", "Sweep", "Telemetry", "TypicalPods", "compare", "job_chart", "plot", "report",
    "stats", "tenant_usage", "__version__", "policies",
}  # fmt: skip
"""Public names of which none has rows of pods."""


MADE = re.compile(r"\b(Workload|PodRows)\b")
"""Rows of pods in the hints of functions that return them."""


def test_every_maker_of_workloads_is_listed() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "fastsim").rglob("*.py")):  # an unpacked sdist has no list of what git ignores
        for function in functions(path) if MADE.search(path.read_text(encoding="utf-8")) else ():
            made = "" if function.returns is None else ast.unparse(function.returns)
            made = made.replace("Self", "PodRows") if path.stem == "pod_rows" else made
            if MADE.search(made) and "Callable" not in made and not function.name.startswith("_"):
                found.setdefault(short(path).removeprefix("fastsim/"), set()).add(function.name)
    listed = {module: {name for names in groups.values() for name in names} for module, groups in MAKERS.items()}
    assert found == listed
    reasons = {reason for groups in MAKERS.values() for reason in groups}
    check_tests(reasons)
    loads = MAKERS["workload/workload.py"][LOAD]
    assert {re.sub("tuned|thinned", "tune", load) for load in LOADS} == loads


def check_tests(reasons: set[str]) -> None:
    """Reasons that name a test name one that there is."""
    named = {reason for reason in reasons if reason.startswith("test_")}
    assert named and [name for name in named if name not in globals() and not hasattr(identity, name)] == []


def test_every_verb_and_public_name_is_listed() -> None:
    assert {name for name, _ in verbs()} == PODS.keys() | OTHERS and not PODS.keys() & OTHERS
    assert set(fs.__all__) == NAMES.keys() | NO_ROWS and not NAMES.keys() & NO_ROWS
    check_tests({*PODS.values(), *NAMES.values()})


@pytest.mark.parametrize("state", ["not rising", "negative", "names"])
def test_verbs_write_the_ids_of_their_source(state: str, tmp_path: Path) -> None:
    ids, order = IDS[state][0], ORDERS["out of order"]
    frame = table(ids, order).with_columns(job_id=pl.Series(["z", "a", "z", "a"]))
    frame.write_csv(tmp_path / "own.csv")
    out = tmp_path / "pods.parquet"
    assert exit_code(["import", "csv", str(tmp_path / "own.csv"), "-o", str(out)]) == 0
    pods = pl.read_parquet(out).join(frame.rename({"pod_id": "id"}), on="submit_s", suffix="_own")
    assert pods["native_id" if state == "names" else "pod_id"].to_list() == pods["id"].to_list()
    assert pods["native_job_id"].to_list() == pods["job_id_own"].to_list()


@pytest.mark.parametrize("kind", [kind for kind in RECORDED if RECORDED[kind][1]])
def test_verbs_write_the_names_of_recorded_traces(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, text, expected = RECORDED[kind]
    (tmp_path / name).write_text(text)
    out = tmp_path / "pods.parquet"
    assert exit_code(["import", kind, str(tmp_path / name), "-o", str(out)]) == 0, capsys.readouterr().err
    assert pl.read_parquet(out)["native_id"].to_list() == expected


def test_jobs_of_readings_have_one_name_each(tmp_path: Path) -> None:
    named = (("x", "p"), ("y", "p"), ("x", "q"))
    parts = [
        readings({"util_pct": [(1000 * s, 1.0)]}, namespace=space, pod=pod) for s, (space, pod) in enumerate(named)
    ]
    both = ordered(pa.concat_tables(parts))
    assert jobs_of(both).pods.table()["native_id"].to_pylist() == ["x/p", "y/p", "q"]
    write(both, tmp_path / "r.parquet")
    assert exit_code(["monitor", "jobs", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "pods.parquet")]) == 0
    assert pl.read_parquet(tmp_path / "pods.parquet")["native_id"].to_list() == ["x/p", "y/p", "q"]


POOL: dict[str, Any] = {"submit_s": [0.0, 1.0, 2.0], "duration_s": [10.0, 5.0, 1.0], "num_gpu": [1, 1, 1]}


@pytest.mark.parametrize("ids", [[7, 3, -1], [1, 2, 2**62], ["b", "a", "7"]])
def test_a_pool_tells_of_own_jobs(ids: list[Any]) -> None:
    found = fs.simulate_pool(pl.DataFrame({"pod_id": ids, **POOL}), 1)
    assert found.columns == ["pod_id", "start_s", "end_s", "wait_s"]
    assert found.select("pod_id", "start_s").rows() == list(zip(ids, [0.0, 10.0, 15.0], strict=True))
    own = fs.Workload.from_polars(pl.DataFrame({"pod_id": ids, "job_id": ["z", "y", "z"], **POOL}))
    frame = fs.simulate_pool(own, 1)
    assert frame["native_id" if isinstance(ids[0], str) else "pod_id"].to_list() == ids
    assert frame["native_job_id"].to_list() == ["z", "y", "z"]


@pytest.mark.parametrize(
    ("ids", "told"),
    [([7, 3, 7], "jobs: pod_id, row 3: found 7, as in row 1, expected every id once"),
     (["a", "b", "b"], "jobs: pod_id, row 3: found b, as in row 2"), ([4, None, 5], "jobs: pod_id, row 2: found null")],
)  # fmt: skip
def test_a_pool_refuses_ids_that_tell_nothing(ids: list[Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        fs.simulate_pool(pl.DataFrame({"pod_id": ids, **POOL}), 1)


def test_jobs_that_fit_keep_their_ids() -> None:
    frame = table([70, -50, 30, 5], ORDERS["by arrival"]).with_columns(job_id=pl.Series(["d", "c", "b", "a"]))
    with pytest.warns(JobOversized):
        pods = fitting(Workload.from_polars(frame), fs.Cluster.uniform(nodes=1, gpu="T4", gpus=3), "drop").table()
    rows = list(zip(pods["pod_id"].to_pylist(), pods["native_job_id"].to_pylist(), strict=True))
    assert rows == [(70, "d"), (-50, "c"), (30, "b")]


def owned(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "x/v1", "kind": kind, "name": name, "controller": True}]}


def in_group(name: str, group: str, owner: dict[str, Any], size: int) -> dict[str, Any]:
    """A pod that waits in a group of Kueue."""
    labels = {"kueue.x-k8s.io/pod-group-name": group}
    return pod(name, {"cpu": 1}, {"kueue.x-k8s.io/pod-group-total-count": str(size)}, labels, meta=owner)


def jobs_by_pod(frame: pl.DataFrame) -> dict[str, str | None]:
    return dict(frame.select("native_id", "native_job_id").rows())


def test_gangs_of_objects_have_the_names_of_their_owners(tmp_path: Path) -> None:
    train, ray = owned("Job", "train"), owned("RayCluster", "ray")
    objects = [
        *(in_group(f"t{number}", "g", train, 2) for number in range(2)),
        in_group("mixed-a", "m", train, 2), in_group("mixed-b", "m", ray, 2),
        *(in_group(f"bare{number}", "b", {}, 2) for number in range(2)),
        pod("alone", {"cpu": 1}), pod("web", {"cpu": 1}, meta=owned("ReplicaSet", "web-1")),
    ]  # fmt: skip
    path = written(tmp_path / "dump.json", node("n"), *objects)
    expected = {
        "default/t0": "Job/default/train", "default/t1": "Job/default/train",
        "default/mixed-a": "PodGroup/default/m", "default/mixed-b": "PodGroup/default/m",
        "default/bare0": "PodGroup/default/b", "default/bare1": "PodGroup/default/b",
        "default/alone": None, "default/web": "ReplicaSet/default/web-1",
    }  # fmt: skip
    workload = Workload.from_kubernetes(path)
    rows = workload.table().select(["job_id", "native_job_id", "gang_size"]).to_pylist()
    assert len({row["job_id"] for row in rows}) == 5 and sum(row["gang_size"] == 2 for row in rows) == 6
    run = fs.simulate(f"kubernetes:{path}", f"kubernetes:{path}", "best_fit")
    for frame in (pl.DataFrame(workload.table()), run.jobs, run.placements):
        assert jobs_by_pod(frame) == expected


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_pods_beside_those_that_run_are_told_apart(tmp_path: Path) -> None:
    there = running("r", "n", {"cpu": 1})
    there["metadata"] |= owned("Job", "old")
    path = written(tmp_path / "now.json", node("n"), there)
    frame = table([30, 10, 40, 20], ORDERS["by arrival"]).with_columns(
        job_id=pl.Series(["z", "y", "z", "x"]), num_gpu=0, gpu_milli=0, cpu_milli=1
    )
    workload = Workload.from_polars(frame)
    run = fs.simulate(f"kubernetes:{path}", workload, "best_fit", record="all")
    for found in (run.jobs, run.placements):
        assert dict(found.select("pod_id", "native_job_id").rows()) == {
            -1: "Job/default/old", 30: "z", 10: "y", 40: "z", 20: "x"
        }  # fmt: skip
    both = with_running(workload, fs.Cluster.from_kubernetes(path)).table()
    assert both["job_id"].to_pylist() == [-1, 0, 1, 0, 2]
