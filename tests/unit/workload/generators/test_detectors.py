"""Jobs of the experiments with the metric-driven scheduler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fastsim.errors import ScenarioError
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload.generators.detectors import LARGEST_GB, NEEDED_GB, NEEDED_MIB, declared, detectors, gaps_s, slots
from tests.objects import workload_of


def test_gaps_are_whole_seconds_between_both_bounds() -> None:
    assert gaps_s(6) == [33, 23, 36, 39, 29, 39]
    assert {*gaps_s(500)} == set(range(20, 41)) and gaps_s(0) == []
    assert {*gaps_s(50, 5, 5)} == {5} and gaps_s(9, seed=1) != gaps_s(9)


def test_declarations_are_cut() -> None:
    assert [declared(6994, over) for over in (0, 50, 250, 400)] == [6994, 10491, 24479, 32510]
    assert [declared(7, over, LARGEST_GB) for over in (50, 150, 400)] == [10, 17, 31]
    assert [slots(request) for request in (7, 10, 17, 31, 32)] == [4, 3, 1, 1, 0]


@pytest.mark.parametrize(
    "ask",
    [lambda: gaps_s(-1), lambda: gaps_s(1, 40, 20), lambda: declared(-1, 0), lambda: declared(1, -5), lambda: slots(0)],
)
def test_bad_numbers_are_named(ask: Callable[[], object]) -> None:
    with pytest.raises(ScenarioError, match="monitored jobs"):
        ask()


@pytest.mark.parametrize("over", [0, 50, 150, 250])
def test_the_three_templates_ask_for_what_generated_jobs_declare(tmp_path: Path, over: int) -> None:
    """A whole device, GiB of one as an extender shares it, and MiB as a label: the rest of a job is the same."""
    gib, mib = declared(NEEDED_GB, over, LARGEST_GB), declared(NEEDED_MIB, over)
    device: dict[str, object] = {"limits": {"nvidia.com/gpu": 1}}
    templates: list[tuple[dict[str, object], dict[str, str]]] = [
        (device, {}), ({"limits": {"aliyun.com/gpu-mem": gib}}, {}), ({}, {"GPU_MEM_REQ": str(mib)}),
    ]  # fmt: skip
    jobs = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"detector-1024-{place}"}, "spec": {
            "backoffLimit": 20, "template": {"metadata": {"labels": labels}, "spec": {
                "restartPolicy": "OnFailure", "hostIPC": True, "containers": [{"name": "c", "resources": resources}],
        }}}}
        for place, (resources, labels) in enumerate(templates)
    ]  # fmt: skip
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    rows = workload_of(Snapshot.read(path)).table().to_pylist()
    by_row = {row["native_id"].split("/")[-1][: len("detector-1024-0")]: row for row in rows}
    whole, shared, labelled = (by_row[f"detector-1024-{place}"] for place in range(3))
    assert (whole["num_gpu"], whole["gpu_milli"]) == (1, 1000)
    assert shared["gpu_memory_mib"] == next(iter(detectors(1, over, "gib").table().to_pylist()))["gpu_memory_mib"]
    assert labelled["gpu_memory_mib"] == next(iter(detectors(1, over).table().to_pylist()))["gpu_memory_mib"]
