"""A dump of Kubernetes: its pods as rows, and a run on it, which reads it once."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastsim as fs
from bench.conftest import Timed
from fastsim.workload.generators.kubernetes_dump import write_dump

NODES, PODS = 500, 10_000

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand pods, half of which run."""
    path = tmp_path_factory.mktemp("dump") / "now.json"
    write_dump(path, NODES, PODS)
    return path


def bench_rows_of_a_dump(timed: Timed, dump: Path) -> None:
    """Read the pods."""
    timed(lambda: fs.Workload.from_kubernetes(dump), items=PODS, budget=60)


def bench_run_on_a_dump(timed: Timed, dump: Path) -> None:
    """Read nodes and pods, and place those that wait."""
    text = f"kubernetes:{dump}"
    timed(lambda: fs.simulate(cluster=text, workload=text, policy="fgd", record="summary"), items=PODS, budget=78)
