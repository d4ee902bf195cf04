"""Durations of pods that state none: by owner, by a history, by tenant, by the mean of all."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.experiments.assumed_durations import AssumedDurations, Means, controller, ending
from fastsim.experiments.capacity_plan import FOUND, smallest_additions
from fastsim.workload import Workload
from fastsim.workload.importers.kubernetes import NodesKept
from tests.objects import node, pod, written

GPU: dict[str, object] = {"nvidia.com/gpu": 1}
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
ZERO = "2026-01-01T00:{:02}:00Z"


def owned(name: str, kind: str, owner: str, namespace: str = "a", **more: Any) -> dict[str, Any]:
    """A pod of a controller."""
    meta = {"namespace": namespace, "ownerReferences": [{"kind": kind, "name": owner, "controller": True}]}
    return pod(name, GPU, meta=meta, **more)


def over(name: str, kind: str, owner: str, minutes: int, namespace: str = "a") -> dict[str, Any]:
    """A pod of a controller that ran so long."""
    ended = {"state": {"terminated": {"finishedAt": ZERO.format(minutes)}}}
    status = {"phase": "Succeeded", "startTime": ZERO.format(0), "containerStatuses": [ended]}
    return owned(name, kind, owner, namespace, status=status, nodeName="n1")


def dump(path: Path, *pods: dict[str, Any]) -> str:
    return f"kubernetes:{written(path, node('n1', T4, amounts={'nvidia.com/gpu': 1}), *pods)}"


def durations(workload: Workload) -> list[float | None]:
    found: list[float | None] = workload.table()["duration_s"].to_pylist()
    return found


def test_an_owner_is_the_controller_above_its_replica_set_or_job() -> None:
    assert controller("ReplicaSet/a/web-6b5d9f4c8") == controller("ReplicaSet/a/web-7c6d8f9b4") == "Deployment/a/web"
    assert controller("ReplicaSet/a/web-main") == "ReplicaSet/a/web-main"
    assert controller("Job/a/etl-29384750") == "CronJob/a/etl" and controller("Job/a/etl-1") == "Job/a/etl-1"
    assert controller("StatefulSet/a/db-2345") == "StatefulSet/a/db-2345" and controller(None) is None


def test_pods_that_are_over_give_their_owners_pods_a_duration(tmp_path: Path) -> None:
    mates = [over("o1", "Job", "etl-29384750", 10), over("o2", "Job", "etl-29384751", 20)]
    others = [over("o3", "Job", "other", 40), over("o4", "Job", "far", 30, "b")]
    waiting = [
        owned(*names) for names in (("w1", "Job", "etl-29384752"), ("w2", "Job", "new"), ("w3", "Job", "x", "c"))
    ]
    now = Workload.from_text(dump(tmp_path / "now.json", *mates, *others, *waiting))
    told = "durations of 3 of 3 pods are assumed: 1 by owner, 1 by tenant in these pods, 1 by their mean"
    with pytest.warns(AssumedDurations, match=told):
        ended = ending(now, "own", None)
    assert durations(ended) == [15 * 60, (10 + 20 + 40) * 20, 25 * 60]
    with pytest.warns(AssumedDurations, match="1 by pod_duration_s"):
        assert durations(ending(now, "own", 7.0)) == [15 * 60, (10 + 20 + 40) * 20, 7.0]


def test_a_history_is_asked_by_owner_tenant_and_mean_after_the_pods_themselves(tmp_path: Path) -> None:
    old = dump(
        tmp_path / "old.json", over("o1", "ReplicaSet", "web-6b5d9f4c8", 10), over("o2", "Job", "b", 20),
        over("o3", "Job", "c", 33, "b"),
    ) + "?as=trace"  # fmt: skip
    pods = [owned("w1", "Job", "b"), owned("w2", "ReplicaSet", "web-7c6d8f9b4"), owned("w3", "Job", "x"),
            owned("w4", "Job", "x", "c")]  # fmt: skip
    now = dump(tmp_path / "now.json", over("own", "Job", "b", 5), *pods)
    told = "4 of 4 pods are assumed: 1 by owner, 1 by owner in .*old.json.as=trace, 1 by tenant in .*, 1 by their mean"
    with pytest.warns(NodesKept):
        read = Workload.from_text(old)
    for history in (old, read):
        with pytest.warns(AssumedDurations, match=told if isinstance(history, str) else "by tenant in"):
            assert durations(ending(Workload.from_text(now), history, None)) == [300, 600, 900, 21 * 60]


def table(**columns: list[Any]) -> Workload:
    """Pods without requests."""
    count = len(columns["duration_s"])
    zeros = {name: [0] * count for name in ("num_gpu", "gpu_milli", "cpu_milli", "memory_mib")}
    return Workload.from_arrow(pl.DataFrame({"pod_id": range(count), "submit_s": [0.0] * count, **zeros, **columns}))


def test_a_table_is_a_history_by_bare_names_and_tenants() -> None:
    history = table(
        duration_s=[10.0, 30.0, 50.0], native_job_id=["train", None, None], tenant=[None, "b", "b"],
        censored=[None, None, True],
    )  # fmt: skip
    asking = table(
        duration_s=[None, None, None, 1.0], native_job_id=["Job/a/train", "Job/b/x", None, None],
        tenant=["a", "b", None, None],
    )  # fmt: skip
    with pytest.warns(AssumedDurations, match="3 of 4 pods"):
        ended = ending(asking, history, None)
    assert durations(ended) == [10, 30, 20, 1]
    assert ended.table().drop_columns("duration_s").equals(asking.table().drop_columns("duration_s"))
    assert Means.of([]).overall is None and Means.of([]).of_owner("x") is None


def test_a_plan_with_assumed_durations(tmp_path: Path) -> None:
    running = owned("r", "Job", "etl", nodeName="n1", status={"phase": "Running"})
    waits = [owned(f"w{number}", "Job", "etl") for number in range(4)]
    text = dump(tmp_path / "now.json", over("o", "Job", "etl", 10), running, *waits)
    base = {"cluster": text, "workload": text, "queue": "fifo"}
    with pytest.warns(AssumedDurations, match="5 of 5 pods are assumed: 5 by owner"):
        table = smallest_additions(base, ["node:n1"], p95_wait_s=700, durations="own")
    assert table.select("outcome", "additions").row(0) == (FOUND, 2) and table["wait_p95_s"][0] == 600


def test_what_is_refused(tmp_path: Path) -> None:
    now = Workload.from_text(dump(tmp_path / "now.json", owned("w", "Job", "x")))
    with pytest.raises(
        InputError, match="plan: durations: found no pod that is over in these pods, expected pods with"
    ):
        ending(now, "own", None)
    with pytest.raises(InputError, match=r"no pod that is over in kubernetes:.*now.json"):
        ending(now, f"kubernetes:{tmp_path / 'now.json'}", None)
    with pytest.raises(InputError, match=r"absent\.json"):
        ending(now, "kubernetes:absent.json", None)
    with pytest.raises(ScenarioError, match="plan: pod_duration_s"):
        ending(now, "own", -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssumedDurations)
        assert durations(ending(now, None, 5.0)) == [5.0]
