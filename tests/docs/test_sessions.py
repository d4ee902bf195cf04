"""What a new user does in the first hour: each session has five commands or fewer and ends with what it is for."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.foundation.http.service import Service
from fastsim.policies import registry
from tests.cli.terminal import fastsim_here
from tests.needs import needed
from tests.objects import node, pod, written

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
EIGHT = "uniform?nodes=2&gpu=A100&gpus=8"
DAY = datetime(2024, 1, 1)


def done(folder: Path, *commands: str | tuple[object, ...], code: int = 0) -> str:
    """Run commands, the last of which exits with this code and the others with 0; the output of the last."""
    assert len(commands) <= 5
    outcome = None
    for place, words in enumerate(commands):
        outcome = fastsim_here(*(words.split() if isinstance(words, str) else words), cwd=folder)
        assert outcome.code == (code if place == len(commands) - 1 else 0), (words, outcome.err)
    assert outcome is not None
    return outcome.out


def rows(folder: Path, *commands: str | tuple[object, ...]) -> list[dict[str, Any]]:
    """The rows that the last of these commands prints as JSON."""
    found: list[dict[str, Any]] = json.loads(done(folder, *commands))
    return found


def clock(minute: float) -> str:
    """A time of day 1, as logs write it."""
    return (DAY + timedelta(minutes=minute)).isoformat()


# ---------------------------------------------------------------------- own data


@pytest.mark.long
def test_own_jobs_under_five_policies_with_seeds(tmp_path: Path) -> None:
    needed("vl_convert")
    (tmp_path / "mine.csv").write_text("start,gpus,cpus,secs\n" + "".join(f"{9 * k},1,4,{60 + k}\n" for k in range(20)))
    (tmp_path / "s.toml").write_text(
        'cluster = "openb:6"\nworkload = "jobs.parquet"\npolicy = ["fgd", "best_fit", "gpu_packing", "pwr", "random"]\n'
        'queue = "fifo"\nseed = [0, 1]\n'
    )
    mapped = "submit_s=start,num_gpu=gpus,cpu_milli=cpus*1000,duration_s=secs"
    done(
        tmp_path,
        ("import", "csv", "mine.csv", "--map", mapped, "-o", "jobs.parquet"),
        "sweep s.toml --out runs",
        "report runs --svg pictures --chart allocation --csv table.csv",
    )
    assert (tmp_path / "pictures" / "allocation.svg").read_text().startswith("<svg")
    assert len(pl.read_csv(tmp_path / "table.csv")) == 5


def test_a_scorer_of_ones_own_beside_a_published_policy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def fullest(nodes, pod):\n    return -nodes.gpu_free.sum(axis=1)\n")
    inputs = "--cluster openb:8 --workload synth:openb?pods=150&seed=1&tune=1.2 --json"
    scores = [
        json.loads(done(tmp_path, f"run {inputs} --policy {policy}"))["summary"]["gpu_alloc_pct"]
        for policy in ("python(scorer='mine:fullest') --allow-code", "random")
    ]
    assert scores[0] > scores[1]


def test_an_order_of_ones_own(tmp_path: Path) -> None:
    done(tmp_path, "new-policy narrow_first --kind order -o .")
    spec = importlib.util.spec_from_file_location("narrow_first_policy", tmp_path / "narrow_first_policy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    jobs = "synth:synergy?jobs=20&rate_per_hour=40&seed=1"
    with patch.dict(registry._classes), patch.dict(sys.modules, {spec.name: module}):
        spec.loader.exec_module(module)
        waits = [fs.simulate("synergy:1", jobs, one).jobs for one in (module.NarrowFirst(), "fcfs")]
    mine, fcfs = (run.filter(num_gpu=1)["wait_s"].to_numpy().mean() for run in waits)
    assert mine < fcfs


def test_a_notebook_shows_tables_and_charts() -> None:
    needed("altair")
    runs = [fs.simulate("openb:10", "synth:openb?pods=80&seed=1&load=2", one, record="all") for one in ("fgd", "pwr")]
    comparison = fs.compare(runs)
    for shown in (runs[0], comparison, fs.Cluster.preset("openb")):
        assert shown._repr_html_().startswith("<table") and "background:transparent" in shown._repr_html_()
    marks = {str(layer["mark"]["type"]) for layer in comparison.plot("allocation").to_dict()["layer"]}
    assert "line" in marks and runs[0].plot("jct").to_dict()["$schema"].startswith("https://vega.github.io")


def test_an_agent_that_fills_nodes_beats_one_that_draws() -> None:
    gymnasium = needed("gymnasium")
    import fastsim.decisions.agents.environment  # noqa: F401  (registers the environments)

    pods = "synth:openb?pods=150&seed={seed}&tune=1.3&tune_seed={seed}"
    env, rng = gymnasium.make("fastsim/Placement-v0", cluster="openb:16", workload=pods), np.random.default_rng(0)
    placed = []
    choices: tuple[Callable[[Any], int], ...] = (
        lambda _: int(env.unwrapped.advice()),
        lambda seen: int(rng.choice(np.flatnonzero(seen["mask"]))),
    )
    for choice in choices:
        (seen, _), over = env.reset(seed=1), False
        while not over:
            seen, _, over, _, _ = env.step(choice(seen))
        placed.append(env.unwrapped.result().summary["gpu_alloc_pct"].item())
    assert placed[0] > placed[1]


# ---------------------------------------------------------------------- logs of real clusters


def test_what_fgd_would_have_done_with_a_log_of_slurm(tmp_path: Path) -> None:
    head = "JobIDRaw|User|Submit|Start|End|State|AllocTRES|NNodes|Timelimit\n"
    jobs = [
        f"{k}|u{k % 3}|{clock(k)}|{clock(k + 200)}|{clock(k + 220 + 5 * (k % 5))}|COMPLETED"
        f"|cpu=4,gres/gpu={1 + k % 3},mem=8G|1|08:00:00"
        for k in range(30)
    ]
    (tmp_path / "log.txt").write_text(head + "\n".join(jobs))
    run = "run --cluster uniform?nodes=2&gpu=V100M32&gpus=4 --workload slurm:log.txt --queue fifo --policy"
    found = rows(tmp_path, f"{run} fgd -o fgd", f"{run} random -o random", "compare fgd random --json")
    assert [row["pods_finished"] for row in found] == [30, 30]
    log = pl.read_parquet(tmp_path / "fgd" / "jobs.parquet")
    recorded_s = 200 * 60.0
    assert 0 < log["wait_s"].to_numpy().mean() < recorded_s


def test_when_the_jobs_that_wait_in_slurm_would_start(tmp_path: Path) -> None:
    number = {"set": True, "infinite": False}
    start_s = int((DAY - datetime(1970, 1, 1)).total_seconds())
    jobs = [
        {"job_id": k, "job_state": ["RUNNING" if k < 4 else "PENDING"], "submit_time": start_s + k,
         "start_time": {**number, "number": start_s + k if k < 4 else 0}, "end_time": {**number, "number": 0},
         "time_limit": {**number, "number": 60}, "tres_req_str": "cpu=2,mem=4G,node=1,gres/gpu=2", "tres_alloc_str": "",
         "node_count": {**number, "number": 1}, "user_name": "ua", "array_task_string": "0-3%2" if k == 4 else ""}
        for k in range(5)
    ]  # fmt: skip
    (tmp_path / "queue.json").write_text(json.dumps({"jobs": jobs}))
    done(
        tmp_path, "import slurm queue.json -o queue.parquet",
        "run --cluster uniform?nodes=1&gpu=A100&gpus=8 --workload queue.parquet --queue easy --policy best_fit -o run",
    )  # fmt: skip
    found = pl.read_parquet(tmp_path / "run" / "jobs.parquet").sort("pod_id")
    assert found["native_id"].to_list() == ["0", "1", "2", "3", "4_0", "4_1", "4_2", "4_3"]
    assert found["start_s"].to_list() == [0.0, 1.0, 2.0, 3.0, 3600.0, 3601.0, 3602.0, 3603.0]


def test_backfilling_of_a_workload_of_the_archive(tmp_path: Path) -> None:
    lines = [f"{k} {10 * k} -1 {100 + k} {1 + k % 4} -1 -1 -1 300 -1 1 {k % 3} 1 1 1 -1 -1 -1" for k in range(1, 40)]
    (tmp_path / "log.swf").write_text("; UnixStartTime: 1000000000\n" + "\n".join(lines) + "\n")
    run = "run --cluster uniform?nodes=2&gpu=A100&gpus=4 --workload jobs.parquet --policy best_fit"
    easy, fifo = rows(
        tmp_path, "import swf log.swf --set processors=gpu -o jobs.parquet", "trace lint jobs.parquet",
        f"{run} --queue easy -o easy", f"{run} --queue fifo -o fifo", "compare easy fifo --json",
    )  # fmt: skip
    assert easy["wait_mean_s"] < fifo["wait_mean_s"]


def test_jobs_from_the_readings_of_an_exporter_run_again(tmp_path: Path) -> None:
    labels = 'gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1",namespace="ml",pod="{}"'
    seen = [
        (f"{{{labels.format('early' if t < 300 else 'late')}}}", 90 if t < 300 else 30, t) for t in range(0, 600, 15)
    ]
    text = "".join(f"DCGM_FI_DEV_GPU_UTIL{where} {util} {t}\n" for where, util, t in seen)
    text += "".join(f"DCGM_FI_DEV_FB_USED{where} 8000 {t}\n" for where, _, t in seen)
    (tmp_path / "metrics.om").write_text(text + "# EOF\n")
    done(
        tmp_path, "monitor import metrics.om -o readings.parquet",
        "monitor jobs readings.parquet -o pods.parquet --profiles profiles.csv",
        f"run --cluster {EIGHT} --workload pods.parquet --policy best_fit --telemetry 15?profiles=profiles.csv -o run",
    )  # fmt: skip
    pods = pl.read_parquet(tmp_path / "pods.parquet")
    assert pods["native_id"].to_list() == ["early", "late"] and pods["gpu_memory_mib"].to_list() == [8000, 8000]
    used = pl.read_parquet(tmp_path / "run" / "telemetry.parquet").filter(metric="util_pct")
    assert used["value"].max() == pytest.approx(90.0)


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" + "".join(
    f"{k},u,v{k % 3},{1 + k % 8},4,1,COMPLETED,{clock(k)},{clock(k + 1)},{clock(k + 61)},3600,60\n" for k in range(30)
)
PAI = "".join(f"j{k},worker,2.0,Terminated,{100 + k},{400 + k},600.0,29.3,{50 + 50 * (k % 2)},T4\n" for k in range(20))
PHILLY = json.dumps([
    {"status": "Pass", "vc": "v1", "jobid": f"j{k}", "submitted_time": clock(k).replace("T", " "), "attempts": [
        {"start_time": clock(k + 1).replace("T", " "), "end_time": clock(k + 31).replace("T", " "),
         "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]}
    for k in range(20)
])  # fmt: skip
TRACES = {"helios": (HELIOS, 30), "pai": (PAI, 40), "philly": (PHILLY, 20)}


@pytest.mark.parametrize("kind", TRACES)
def test_a_published_trace_on_a_cluster_of_another_kind(kind: str, tmp_path: Path) -> None:
    text, pods = TRACES[kind]
    (tmp_path / f"log.{'json' if kind == 'philly' else 'csv'}").write_text(text)
    name = next(tmp_path.iterdir()).name
    run = "run --cluster openb:20 --workload pods.parquet --queue fifo --policy"
    found = rows(
        tmp_path, f"import {kind} {name} -o pods.parquet", f"{run} fgd -o fgd", f"{run} best_fit -o best_fit",
        "compare fgd best_fit --json",
    )  # fmt: skip
    assert [row["pods_finished"] for row in found] == [pods, pods]


# ---------------------------------------------------------------------- Kubernetes


def test_a_cluster_of_kubernetes_grows_and_goes_back_as_yaml(tmp_path: Path) -> None:
    yaml = needed("yaml")
    gpus = {"nvidia.com/gpu": "4"}
    asks = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 2}
    written(tmp_path / "now.json", node("n1", A100, amounts=gpus), *(pod(f"p{k}", asks) for k in range(3)))
    inputs = ("--cluster", "kubernetes:now.json", "--workload", "kubernetes:now.json")
    rows = json.loads(done(tmp_path, ("plan", *inputs, "--add", "node:n1", "--json")))
    assert rows[0]["outcome"] == "found"
    done(tmp_path, ("run", *inputs, "--policy", "fgd", "-o", "run"), "export kubernetes run -o placed.yaml")
    bound = [one for one in yaml.safe_load_all((tmp_path / "placed.yaml").read_text()) if one]
    assert "nodeName: n1" in (tmp_path / "placed.yaml").read_text() and bound


def test_a_policy_answers_a_scheduler(tmp_path: Path) -> None:
    names: list[str] = ["full", "half", "free"]
    gpu: dict[str, object] = {"nvidia.com/gpu": 1}
    nodes = (node(name, A100, amounts={"nvidia.com/gpu": "2"}) for name in names)
    running = (pod(f"p{k}", gpu, status={"phase": "Running"}, nodeName=names[k // 2]) for k in range(3))
    written(tmp_path / "live.json", *nodes, *running)
    asked = json.dumps({"Pod": pod("new", gpu), "NodeNames": names})
    answers: list[Any] = []

    def once(service: Service, *_: object) -> None:
        """Two requests, as a scheduler sends them, instead of waiting for them."""
        replies = (service.answer("POST", path, "127.0.0.1", asked.encode()) for path in ("/filter", "/prioritize"))
        answers.extend(json.loads(reply.body) for reply in replies)
        service.run(lambda: True)

    with patch("fastsim.cli.kubernetes.until_ended", once):
        done(tmp_path, "serve-extender --snapshot live.json --policy best_fit --listen 127.0.0.1:0")
    assert answers[0]["NodeNames"] == ["half", "free"]
    assert {one["Host"]: one["Score"] for one in answers[1]}["half"] == 10


def test_gangs_of_volcano_and_kubeflow_start_whole_or_not_at_all(tmp_path: Path) -> None:
    needed("yaml")
    worker = (
        "{spec: {containers: [{name: w, image: x, resources: {limits: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 8}}}]}}"
    )
    volcano = f"""apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: wide}}
spec: {{minAvailable: 3, tasks: [{{replicas: 3, name: worker, template: {worker}}}]}}
"""
    kubeflow = f"""apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: torch}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {worker}}}
    Worker: {{replicas: 1, template: {worker}}}
"""
    (tmp_path / "jobs.yaml").write_text(f"{volcano}---\n{kubeflow}")
    cluster = f"{EIGHT}&cpu_milli=64000&memory_mib=262144"
    refused = fastsim_here("run", "--cluster", cluster, "--workload", "jobs.yaml", cwd=tmp_path)
    assert refused.code == 2 and "kubernetes:jobs.yaml" in refused.line
    done(tmp_path, f"run --cluster {cluster} --workload kubernetes:jobs.yaml --queue fifo_skip -o run")
    jobs = pl.read_parquet(tmp_path / "run" / "jobs.parquet")
    placed = jobs.filter(pl.col("start_s").is_not_null())["native_id"].to_list()
    assert len(jobs) == 5 and sorted(placed) == ["default/torch-master-0", "default/torch-worker-0"]


def test_why_a_pod_waits(tmp_path: Path) -> None:
    amounts = {"nvidia.com/gpu": "4"}
    pods = [pod(f"p{k}", {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 3}) for k in range(3)]
    written(tmp_path / "now.json", *(node(f"n{k}", A100, amounts=amounts) for k in (1, 2)), *pods)
    run = "run --cluster kubernetes:now.json --workload kubernetes:now.json --queue fifo -o run"
    told = done(tmp_path, run, "explain run p2")
    assert "0/2 nodes are available: 2 Insufficient nvidia.com/gpu." in told


# ---------------------------------------------------------------------- jobs in rounds, adaptive jobs


def test_shares_of_a_gavel_trace_and_their_fairness(tmp_path: Path) -> None:
    run = "run --cluster gavel:2:2:2 --workload synth:gavel?jobs=15&rate_per_hour=8&seed=1 --policy"
    names = ("max_min_fairness", "finish_time_fairness", "min_total_duration")
    done(tmp_path, *(f"{run} {name} -o {name}" for name in names))
    worst = [max(row["rho"] for row in rows(tmp_path, f"fairness {name} --json")) for name in names]
    assert worst[1] <= worst[2] and worst[0] <= worst[2]


@pytest.mark.long
def test_adaptive_jobs_at_three_loads_with_intervals(tmp_path: Path) -> None:
    needed("vl_convert")
    (tmp_path / "s.toml").write_text(
        'cluster = "sia:2:1:1"\nworkload = "synth:sia?jobs=6&seed={seed}&rate_per_hour={load}&oversized=shrink"\n'
        'policy = ["sia", "served"]\nround_s = 360\nseed = [0, 1]\n[vars]\nload = [5, 20, 80]\n'
    )
    found = rows(tmp_path, "sweep s.toml -o runs", "plot jct_over_load runs -o jct.svg", "sweep stats runs --json")
    assert {(row["load"], row["policy"]) for row in found} == {(n, p) for n in (5, 20, 80) for p in ("sia", "served")}
    assert all(row["low"] < row["mean"] < row["high"] for row in found) and (tmp_path / "jct.svg").exists()
    assert {row["policy"] for row in found if row["verdict"] == "best"} == {"sia"}


def test_tuning_cpus_against_fair_parts(tmp_path: Path) -> None:
    run = "run --cluster synergy:2 --workload synth:synergy?jobs=40&rate_per_hour=4&seed=1 --policy"
    tune, fifo = rows(tmp_path, f"{run} srtf+tune -o tune", f"{run} fifo+fair -o fifo", "compare tune fifo --json")
    assert tune["jct_mean_s"] < fifo["jct_mean_s"]


# ---------------------------------------------------------------------- long runs, many runs, figures


def test_another_policy_from_a_checkpoint_on(tmp_path: Path) -> None:
    first, other = rows(
        tmp_path, "run --cluster openb:3 --workload synth:openb?pods=300&seed=1&load=2 --queue fifo --policy fgd -o a "
        "--checkpoint 100 --keep-checkpoint", "fork a --policy pwr -o b", "compare a b --json",
    )  # fmt: skip
    tables = [pl.read_parquet(tmp_path / name / "placements.parquet").sort("start_s", "pod_id") for name in "ab"]
    assert tables[0].head(90).equals(tables[1].head(90)) and not tables[0].equals(tables[1])
    assert other["energy_kwh"] != first["energy_kwh"]


def test_what_power_and_carbon_cost_under_two_policies(tmp_path: Path) -> None:
    run = (
        "run --cluster mix?t4=4&g2=2 --workload synth:openb?pods=100&seed=1 --queue fifo --prices fixed?T4=0.35&G2=2 "
        "--carbon 350?pue=1.2 --policy"
    )
    text = done(tmp_path, f"{run} fgd -o fgd", f"{run} pwr -o pwr", "compare fgd pwr")
    assert "cost $" in text and "CO2 kg" in text
    fgd, pwr = rows(tmp_path, "compare fgd pwr --json")
    assert pwr["co2_kg"] == pytest.approx(pwr["energy_kwh"] * 1.2 * 0.35) and pwr["co2_kg"] < fgd["co2_kg"]
    assert 0 < fgd["cost"] != pwr["cost"] > 0


def test_a_run_that_is_audited_and_one_that_was_changed(tmp_path: Path) -> None:
    run = "run --cluster openb:8 --workload synth:openb?pods=60&seed=1 --queue fifo -o run"
    assert "none differs" in done(tmp_path, run, "audit run")
    path = tmp_path / "run" / "summary.parquet"
    pl.read_parquet(path).with_columns(pl.col("gpu_hours") * 1.01).write_parquet(path)
    assert "gpu_hours" in done(tmp_path, "audit run", code=1)


@pytest.mark.long
def test_a_sweep_on_two_workers_and_its_best_policy(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'cluster = "synergy:2"\nworkload = "synth:synergy?jobs=30&rate_per_hour=6&seed={seed}"\n'
        'policy = ["fcfs", "srtf"]\nseed = [0, 1, 2, 3]\n'
    )
    found = rows(
        tmp_path, "sweep s.toml -o runs --workers 2", "report runs --csv t.csv --latex t.tex", "sweep stats runs --json"
    )
    assert found[0]["policy"] == "srtf" and found[0]["verdict"] == "best" and found[0]["n"] == 4
    assert "jct_mean_s_ci95" in (tmp_path / "t.csv").read_text() and "toprule" in (tmp_path / "t.tex").read_text()


def test_a_figure_of_a_paper(tmp_path: Path) -> None:
    listed = rows(tmp_path, "reproduce synergy --list --json")
    assert {"figure": "sensitivity", "status": "made"}.items() <= next(
        r for r in listed if r["figure"] == "sensitivity"
    ).items()
    cells = rows(tmp_path, "reproduce synergy --figure sensitivity -o made --json")
    assert {cell["figure"] for cell in cells} == {"sensitivity"} and all(cell["ours"] >= 1 for cell in cells)
    assert "sensitivity" in (tmp_path / "made" / "index.html").read_text()
