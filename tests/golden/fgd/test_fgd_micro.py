"""Every recorded raw score, device choice, fragmentation and power of single nodes, exactly."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fastsim.engine.online.plan import PodRequest
from fastsim.workload.typical_pods import TypicalPods
from tests.backends import BACKENDS, Backend, NodeState
from tests.conftest import LONG, SHARED
from tests.golden.fgd.fgd import PodTable, raw_trace

FGD = SHARED / "golden/fgd"
FILES = sorted(FGD.glob("micro/*.jsonl.gz"))
MIB = 1 << 20

KERNELS = {
    "FGD": "fgd", "PWR": "pwr", "BestFit": "best_fit", "GpuPacking": "gpu_packing", "GpuClustering": "gpu_clustering",
    "DotProd": "dot_product",
}  # fmt: skip
PICKS = {
    "best": "best", "worst": "worst", "FGDScore": "fgd", "PWRScore": "pwr", "DotProductScore": "dot_product",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One pod on one node, with what the original simulator recorded about them."""

    pod: PodRequest
    state: NodeState
    recorded: dict[str, Any]

    @property
    def label(self) -> str:
        """Names the pair in a failure message."""
        return f"{self.pod} on {self.recorded['node']} {self.state}"


@cache
def cases(path: Path) -> list[Case]:
    with gzip.open(path, "rt") as file:
        return [case for line in file for case in _cases(json.loads(line))]


def _cases(row: dict[str, Any]) -> Iterator[Case]:
    models = tuple(row["gpu_spec"].split("|")) if row["gpu_spec"] else ()
    pod = PodRequest(row["cpu"], row["mem"] // MIB, row["num_gpu"], row["gpu_milli"], models)
    for node in row["nodes"]:
        tags = tuple(sorted(node["gpu_affinity"].items()))
        state = NodeState(
            node["gpu_model"], node["cpu_cap"], node["cpu_left"], node["mem_left"] // MIB, tuple(node["gpu_left"]), tags
        )
        yield Case(pod, state, node)


@cache
def typical(path: Path) -> TypicalPods:
    """The typical pods of the trace a micro file was recorded with."""
    [trace] = [
        folder.parent.name.rpartition("-seed")[0]
        for folder in FGD.glob("inputs/*/typical_pods.csv")
        if path.name.startswith(folder.parent.name)
    ]
    return TypicalPods.of(PodTable(raw_trace(FGD, trace)))


@pytest.fixture(params=FILES, ids=[path.name.partition(".")[0] for path in FILES])
def path(request: pytest.FixtureRequest) -> Path:
    """One recorded file."""
    return Path(request.param)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, path: Path) -> Backend:
    """One spelling of the scores."""
    return BACKENDS[request.param](typical(path))


def test_every_raw_score(backend: Backend, path: Path) -> None:
    for case in cases(path):
        for name, points in case.recorded["raw"].items():
            kernel, _, variant = name.partition("/")
            dim, _, norm = variant.partition("/")
            found = backend.raw(KERNELS[kernel], dim or "merge", norm or "max", case.state, case.pod)
            assert found == points, f"{name}: {case.label}"


@pytest.mark.long
def test_every_device_choice(backend: Backend, path: Path) -> None:
    for case in cases(path)[:: 1 if LONG else 3]:
        for name, chosen in case.recorded["gpu_sel"].items():
            method, _, variant = name.partition("/")
            dim, _, norm = variant.partition("/")
            if dim == "merge":
                continue  # The original names no device here: its merged vector stands for all of them.
            found = backend.gpu_pick(PICKS[method], dim or "share", norm or "max", case.state, case.pod)
            assert "-".join(map(str, found)) == chosen, f"{name}: {case.label}"


def test_every_fragmentation_bit_for_bit(backend: Backend, path: Path) -> None:
    for case in cases(path):
        assert list(backend.frag(case.state)) == case.recorded["frag_before"], case.label
        for device, after in case.recorded["frag_after_sum"].items():
            index = None if device == "all" else int(device)
            assert backend.frag_after(case.state, case.pod, index) == after, f"device {device}: {case.label}"


def test_every_power(backend: Backend, path: Path) -> None:
    for case in cases(path):
        recorded = case.recorded["power_cpu"] * 1000, case.recorded["power_gpu"] * 1000
        assert backend.power(case.state) == recorded, case.label


def test_every_file_holds_cases(path: Path) -> None:
    assert cases(path)
