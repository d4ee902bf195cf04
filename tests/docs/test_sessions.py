"""What a new user does in the first hour: each session has five commands or fewer and ends with what it is for."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tests.cli.terminal import fastsim_here
from tests.needs import needed
from tests.objects import node, pod, written

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}


def done(folder: Path, *commands: str | tuple[object, ...], code: int = 0) -> str:
    """Run commands, the last of which exits with this code and the others with 0; the output of the last."""
    assert len(commands) <= 5
    outcome = None
    for place, words in enumerate(commands):
        outcome = fastsim_here(*(words.split() if isinstance(words, str) else words), cwd=folder)
        assert outcome.code == (code if place == len(commands) - 1 else 0), (words, outcome.err)
    assert outcome is not None
    return outcome.out


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
