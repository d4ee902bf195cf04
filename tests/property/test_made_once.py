"""A run makes its cluster, workload and policy once, in every engine, with telemetry and without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.cluster import texts as clusters
from fastsim.kubernetes import pods
from fastsim.policies import expression
from fastsim.workload import texts as workloads
from tests.engines import RUNS

MAKERS = ((clusters, "cluster_text"), (workloads, "_opened_pods"), (expression, "policy_from_text"))
"""Functions that make an object of a text."""


@pytest.mark.parametrize("telemetry", [None, 600.0])
@pytest.mark.parametrize("engine", RUNS)
def test_each_object_is_made_once(engine: str, telemetry: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        make = getattr(module, name)

        def one_more(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return make(*arguments, **options)

        monkeypatch.setattr(module, name, one_more)

    for module, name in MAKERS:
        counted(module, name)
    fs.simulate(**RUNS[engine], telemetry=telemetry)
    assert calls == {name: 1 for _, name in MAKERS}


@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_dump_are_made_once_though_cluster_and_pods_are_read_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = str(tmp_path / "dump.json")
    assert exit_code(["synth", "kubernetes", "--nodes", "4", "--pods", "30", "-o", dump]) == 0
    text = f"kubernetes:{dump}"
    together = fs.simulate(text, text, "fgd")
    cluster, workload = fs.Cluster.from_kubernetes(dump), fs.Workload.from_kubernetes(dump)
    monkeypatch.delattr(pods, "pod_row")
    apart = fs.simulate(cluster, workload, "fgd")
    assert apart.placements.equals(together.placements) and apart.jobs.equals(together.jobs)
