"""Pods from series of kube-state-metrics: their times and requests, and the pods that are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastsim.cli.main import exit_code
from fastsim.errors import InputError
from fastsim.telemetry.kube_state import PodsLeftOut, pods_of

T = 1_763_632_800


def series(name: str, values: dict[int, float], pod: str = "p", **labels: str) -> dict[str, object]:
    """A series of one pod: values by second of the record."""
    metric = {"__name__": f"kube_pod_{name}", "namespace": "kube-state", "exported_namespace": "ns", "uid": pod}
    pairs = [[T + second, str(value)] for second, value in values.items()]
    return {"metric": metric | {"pod": "kube-state-0", "exported_pod": pod} | labels, "values": pairs}


def request(resource: str, amount: float, container: str = "c", pod: str = "p", init: str = "") -> dict[str, object]:
    return series(
        f"{init}container_resource_requests", {0: amount}, pod, resource=resource, exported_container=container
    )


def saved(path: Path, *result: dict[str, object]) -> Path:
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    return path


def test_times(tmp_path: Path) -> None:
    """One pod completed, one failed, one vanished, one runs, one waits, and two are left out."""
    through = dict.fromkeys((0, 60, 120), 1.0)
    path = saved(
        tmp_path / "a.json",
        series("created", {0: T - 100}, "done"), series("start_time", {0: T - 90}, "done"),
        series("completion_time", {60: T + 10}, "done"), series("info", through, "done"),
        series("created", {0: T - 50}, "failed"), series("start_time", {0: T - 40}, "failed"),
        series("status_phase", {0: 0, 60: 1, 120: 1}, "failed", phase="Failed"),
        series("start_time", {0: T, 60: T}, "gone"),
        series("start_time", {120: T + 90}, "runs"), series("created", {120: T + 80}, "runs"),
        series("info", {120: 1}, "waits"),
        series("info", {0: 1}, "cancelled"), series("info", {0: 1}, "cancelled", uid="again"),
    )  # fmt: skip
    with pytest.warns(PodsLeftOut, match=r"a\.json: pods that are left out, because they ended and .* started: 2$"):
        rows = pods_of([path]).table().to_pylist()
    assert [(row["native_id"], row["submit_s"], row["duration_s"], row["orig_start_s"]) for row in rows] == [
        ("ns/done", 0, 100, 10), ("ns/failed", 50, 100, 60), ("ns/gone", 100, 120, 100), ("ns/runs", 180, None, 190),
        ("ns/waits", 220, None, None),
    ]  # fmt: skip
    assert {row["tenant"] for row in rows} == {"ns"}


def test_controllers_are_the_owners_of_pods(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "a.json",
        series("info", {0: 1}, "a", created_by_kind="Job", created_by_name="etl"),
        series("owner", {0: 1}, "b", owner_kind="ReplicaSet", owner_name="web-6b5d9f4c8"),
        series("info", {0: 1}, "c", created_by_kind="<none>", created_by_name="<none>"),
    )  # fmt: skip
    rows = pods_of([path]).table().to_pylist()
    assert [row["native_job_id"] for row in rows] == ["Job/ns/etl", "ReplicaSet/ns/web-6b5d9f4c8", None]


def test_samples_of_two_exporters_are_at_different_moments(tmp_path: Path) -> None:
    """A pod of the one is there at the end, although a later moment of the other follows."""
    times = {"a": (0, 30, 60, 90), "b": (7, 37, 67, 97), "c": (0, 30)}
    path = saved(tmp_path / "a.json", *(
        series("start_time", dict.fromkeys(seconds, T), pod) for pod, seconds in times.items()
    ))  # fmt: skip
    assert [row["duration_s"] for row in pods_of([path]).table().to_pylist()] == [None, None, 60]


def test_requests(tmp_path: Path) -> None:
    """The sum over containers or the most of an init container, whole GPUs, and instances of partitioned ones."""
    path = saved(
        tmp_path / "a.json", request("cpu", 0.1), request("cpu", 0.25, "d"), request("cpu", 0.3, "i", init="init_"),
        request("memory", 2**20 + 1), request("memory", 2**30, "i", init="init_"), request("nvidia_com_gpu", 2),
        request("nvidia_com_mig_1g_10gb_me", 1, pod="q"), request("rdma_hca", 1, pod="q"),
    )  # fmt: skip
    with pytest.warns(PodsLeftOut, match=r"pods that request rdma_hca, which is left out: 1$"):
        rows = pods_of([path]).table().to_pylist()
    names = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "mig")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (350, 1024, 2, 1000, None), (0, 0, 0, 0, "1*1g.10gb+me"),
    ]  # fmt: skip


def test_text_of_the_exporter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = 'namespace="ns",pod="p",uid="1"'
    text = (f'kube_pod_start_time{{{labels}}} 1.7e+09\nkube_pod_completion_time{{{labels}}} 1.700000060e+09\nup 1\n'
            f'kube_pod_container_resource_requests{{{labels},resource="nvidia_com_gpu"}} 1\n')  # fmt: skip
    (tmp_path / "k.txt").write_text(text)
    words = ["monitor", "jobs", "--kube-state", str(tmp_path / "k.txt"), "-o", str(tmp_path / "pods.parquet")]
    assert exit_code(words) == 0 and "1 pods" in capsys.readouterr().out
    assert [(row["duration_s"], row["num_gpu"]) for row in pods_of([tmp_path / "k.txt"]).table().to_pylist()] == [
        (60, 1)
    ]
    assert exit_code([*words, "--profiles", str(tmp_path / "p.csv")]) == 2
    assert "--profiles" in capsys.readouterr().err


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.json: found no pods, expected series of kube-state-metrics"):
        pods_of([saved(tmp_path / "a.json", series("labels", {0: 1}))])
    late = series("start_time", {0: T}), series("completion_time", {0: T - 5})
    with pytest.raises(InputError, match=r"a\.json: pod ns/p: end: found -5 s after the start"):
        pods_of([saved(tmp_path / "a.json", *late)])
    for amount in (-5, 1e300):
        with pytest.raises(InputError, match=rf"a\.json: pod ns/p: cpu: found {amount:g}".replace("+", r"\+")):
            pods_of([saved(tmp_path / "a.json", series("container_resource_requests", {0: amount}, resource="cpu"))])
