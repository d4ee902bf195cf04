"""The long table of readings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import parquet_table
from fastsim.telemetry.metric_names import by_name
from fastsim.telemetry.readings_table import NoNumber, Sample, device_columns, ordered, table_of, write
from tests.telemetry import table


def test_labels_that_a_target_renamed_are_put_together() -> None:
    labels = {"exported_pod": "mine", "pod": "exporter-x", "exported_namespace": "ns", "namespace": "monitoring",
            "Hostname": "n1", "instance": "10.0.0.1:9400", "UUID": "GPU-1", "gpu": "3", "modelName": "T4"}  # fmt: skip
    assert device_columns(labels) == {
        "gpu_index": 3, "gpu_uuid": "GPU-1", "model": "T4", "node": "n1", "namespace": "ns", "pod": "mine",
        "container": None,
    }  # fmt: skip
    assert device_columns({"instance": "n2:9100", "pod": ""})["node"] == "n2"
    with pytest.raises(InputError, match="label gpu: found 'first'"):
        device_columns({"gpu": "first"})


def test_rows_are_sorted_and_stand_once() -> None:
    labels, unknown = {"gpu": "0", "UUID": "GPU-1"}, Counter[str]()
    samples = [
        Sample("dcgm_power_usage", labels, 2000, 30.0), Sample("dcgm_power_usage", labels, 1000, 29.0),
        Sample("dcgm_power_usage", labels, 1000, 29.0), Sample("DCGM_FI_DEV_FB_USED", labels, 1000, float("nan")),
        Sample("DCGM_FI_DEV_FB_USED", labels, 2000, 9223372036854775794.0), Sample("up", labels, 2000, 1.0),
    ]  # fmt: skip
    with pytest.warns(NoNumber, match="^telemetry: samples that are NaN or infinite, which are left out: 1$"):
        found = table_of(samples, by_name(), unknown)
    assert found["value"].to_pylist() == [29.0, 30.0] and set(found["metric"].to_pylist()) == {"power_w"}
    assert unknown == {"up": 1}
    with pytest.raises(InputError, match=r"power_w of GPU-1 at .*: found 29 and 31, expected one value"):
        table_of([*samples[:3], Sample("dcgm_power_usage", labels, 1000, 31.0)], by_name())


def test_parquet_is_the_same_bytes_for_the_same_readings(tmp_path: Path) -> None:
    found = table({"power_w": [(0, 1.5), (1000, 2.5)], "util_pct": [(0, 5.0)]})
    assert write(found, tmp_path / "a.parquet") == 3
    write(found.take([2, 0, 1]), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert ordered(parquet_table(tmp_path / "a.parquet", Work.READINGS)) == found


def test_instances_of_one_board_are_devices_of_their_own() -> None:
    """Two idle instances have unlike readings at one time; utilisation is that of the engine, 0 to 1."""
    board = {"gpu": "0", "UUID": "GPU-1", "modelName": "A100"}
    instances = [board | {"GPU_I_ID": number, "GPU_I_PROFILE": "1g.10gb+me"} for number in ("7", "8")]
    samples = [Sample("DCGM_FI_DEV_FB_USED", labels, 0, value) for value, labels in enumerate([*instances, board])]
    samples += [
        Sample(name, labels, 0, 0.25)
        for name in ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL") for labels in (instances[0], board)
    ]  # fmt: skip
    unknown: Counter[str] = Counter()
    rows = [(row["metric"], row["gpu_uuid"], row["gpu_index"], row["model"], row["value"])
            for row in table_of(samples, by_name(), unknown).to_pylist()]  # fmt: skip
    assert rows == [
        ("memory_used_mib", "GPU-1", 0, "A100", 2), ("memory_used_mib", "MIG-GPU-1/7", 0, "A100-MIG-1g.10gb.me", 0),
        ("memory_used_mib", "MIG-GPU-1/8", 0, "A100-MIG-1g.10gb.me", 1),
        ("util_pct", "GPU-1", 0, "A100", 0.25), ("util_pct", "MIG-GPU-1/7", 0, "A100-MIG-1g.10gb.me", 25),
    ]  # fmt: skip
    assert unknown == {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1, "DCGM_FI_DEV_GPU_UTIL": 1}


def test_an_exporter_is_no_pod_on_an_idle_device() -> None:
    """Pod, namespace and container are the exporter's own where its job of Prometheus renames labels."""

    def sample(ms: int, **labels: str) -> Sample:
        own = {"pod": "exporter-x7", "namespace": "gpu-operator", "container": "exporter", "job": "gpu"}
        return Sample("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-1"} | own | labels, ms, 5.0)

    samples = [
        sample(0), sample(1), sample(2, exported_pod="p", exported_namespace="ns"), sample(3, pod="exporter-y8"),
        sample(0, UUID="GPU-2"), sample(0, UUID="GPU-3", job="other", pod="q"),
    ]  # fmt: skip
    rows = table_of(samples, by_name()).to_pylist()
    assert [(row["gpu_uuid"], row["ts"].microsecond // 1000, row["pod"], row["namespace"]) for row in rows] == [
        ("GPU-1", 0, None, None), ("GPU-1", 1, None, None), ("GPU-1", 3, None, None), ("GPU-1", 2, "p", "ns"),
        ("GPU-2", 0, None, None), ("GPU-3", 0, "q", "gpu-operator"),
    ]  # fmt: skip
    assert {row["pod"] for row in table_of([sample(0)], by_name()).to_pylist()} == {"exporter-x7"}


@pytest.mark.parametrize("own", [
    {"pod": "dcgm-exporter-x7"}, {"pod": "nvidia-dcgm-exporter-x7"}, {"pod": "x7", "container": "dcgm-exporter"},
])  # fmt: skip
def test_an_exporter_is_no_pod_where_every_device_is_idle(own: dict[str, str]) -> None:
    """An exporter asks for no GPU, so that a series with its name is about an idle device."""
    labels = {"UUID": "GPU-1", "namespace": "gpu-operator", "job": "gpu", **own}
    other = {"UUID": "GPU-2", "namespace": "ns", "pod": "train", "container": "main"}
    rows = table_of([Sample("DCGM_FI_DEV_GPU_UTIL", one, 0, 0.0) for one in (labels, other)], by_name()).to_pylist()
    assert [(row["pod"], row["namespace"], row["container"]) for row in rows] == [(None,) * 3, ("train", "ns", "main")]
