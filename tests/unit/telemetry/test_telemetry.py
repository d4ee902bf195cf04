"""What a run shall report of its GPUs: texts, and mistakes in them."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError, ScenarioError
from fastsim.hardware.model_catalog import Catalog, GpuModel
from fastsim.telemetry.sample_and_hold import refresh_times
from fastsim.telemetry.telemetry import RECORDED, Telemetry, telemetry_from
from fastsim.telemetry.usage_profile import profiles_from_csv

PODS = [
    {
        "submit_s": 0.0,
        "duration_s": 50.0,
        "cpu_milli": 1000,
        "memory_mib": 0,
        "num_gpu": 1,
        "gpu_milli": 500,
        "pod_id": 0,
    }
]


def test_numbers_and_texts() -> None:
    assert telemetry_from(None) is None
    assert telemetry_from(30) == Telemetry(30.0) == telemetry_from("30")
    text = "1?refresh_s=6:8&epoch=2024-01-01T00:00:00Z&devices=recorded"
    assert telemetry_from(text) == Telemetry(1.0, devices=RECORDED, refresh_s=(6, 8), epoch="2024-01-01T00:00:00Z")
    assert (
        Telemetry(epoch="2024-01-01T00:00:00Z").epoch_ms == 1_704_067_200_000 == Telemetry(epoch="2024-01-01").epoch_ms
    )


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "telemetry '': found ''"),
        ("soon", "found 'soon', expected seconds"),
        (0, "every_s: found 0.0, expected seconds above 0"),
        (0.0001, "whole milliseconds"),
        (math.inf, "every_s: found inf"),
        (True, "telemetry: found True (bool)"),
        ("15?often=1", "option 'often=1'"),
        ("15?refresh_s=1&refresh_s=2", "option 'refresh_s=2'"),
        ("15?refresh_s=a", "found 'a'"),
        ("15?refresh_s=0", "refresh_s: found (0.0,), expected gaps above 0 s"),
        ("15?epoch=yesterday", "epoch: found 'yesterday'"),
        ("15?devices=mine", "devices: found 'mine', expected 'recorded'"),
        ("15?profiles=nowhere.csv", "nowhere.csv"),
    ],
)
def test_mistakes(source: object, told: str) -> None:
    with pytest.raises((ScenarioError, InputError)) as caught:
        telemetry_from(source)
    assert told in str(caught.value)
    with pytest.raises((ScenarioError, InputError)):
        fs.simulate("uniform?nodes=1&gpu=T4", "synth:openb?pods=1", telemetry=source)  # type: ignore[arg-type]


def test_profiles_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "profiles.csv"
    path.write_text("name,duration_s,memory_mib,util_pct,power_w\na,5,100,,\na,,200,50,10\nb,,1,2,3\n")
    found = telemetry_from(f"15?profiles={path}")
    assert found is not None and {"a", "b", "detector"} == set(found.profiles)
    assert [phase.memory_mib for phase in found.profiles["a"].phases] == [100, 200]
    path.write_text("name,duration_s\na,5\n")
    with pytest.raises(InputError, match="last phase of infinite duration"):
        telemetry_from(f"15?profiles={path}")
    path.write_text("name,duration_s\n,5\n")
    with pytest.raises(InputError, match=r"profiles.csv:2: name: found nothing"):
        telemetry_from(f"15?profiles={path}")
    path.write_text("name,duration_s,memory_mib,less_mib\na,,200,150:20.5\n")
    assert profiles_from_csv(path)["a"].phases[0].less_mib == (150, 20.5)
    path.write_text("name,duration_s,less_mib\na,,1GB\n")
    with pytest.raises(InputError, match=r"profiles.csv:2: less_mib: found '1GB'"):
        profiles_from_csv(path)


def test_the_exporter_looks_as_it_does_elsewhere() -> None:
    telemetry = Telemetry(refresh_s=(6, 8))
    assert list(islice(telemetry.refreshes(3.0, seed=5), 20)) == refresh_times(3.0, 500.0, (6, 8), seed=5)[:20].tolist()
    assert not list(Telemetry().refreshes(0.0, 1))


def test_refreshes_whose_gaps_add_nothing_to_the_time_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"telemetry: refresh_s: found \(1e-09, 2e-09\), expected a gap that adds"):
        list(Telemetry(refresh_s=(1e-9, 2e-9)).refreshes(1e9, seed=5))
    assert next(Telemetry(refresh_s=(1e-9, 5.0)).refreshes(1e9, seed=5)) == 1e9


def test_a_device_follows_the_catalogue() -> None:
    cluster = fs.Cluster.uniform(nodes=1, gpu="V100M32")
    assert Telemetry().device("V100M32", cluster).peak_w == 300 and not Telemetry().device("V100M32", cluster).power_w
    assert Telemetry(devices=RECORDED).device("V100M32", cluster).power_w
    vague = Catalog.default().extended(gpu={"X": GpuModel(1, 2)})
    with pytest.raises(InputError, match="GPU model X: memory_mib: found nothing"):
        fs.simulate(fs.Cluster.uniform(nodes=1, gpu="X", catalog=vague), "synth:openb?pods=1", telemetry=1)


def test_a_pod_uses_its_share() -> None:
    pods = fs.Workload.from_arrow(pl.DataFrame(PODS))
    result = fs.simulate("uniform?nodes=1&gpu=T4&gpus=1", pods, telemetry="10?epoch=2024-01-01T00:00:00Z")
    readings = result.telemetry.filter(metric="util_pct")
    assert np.allclose(readings["value"], [0, 50, 50, 50, 50, 0])
    assert readings["pod"].to_list() == [None, "0", "0", "0", "0", None]
    assert str(readings["ts"][0]) == "2024-01-01 00:00:00+00:00"
    assert result.telemetry.filter(metric="memory_used_mib")["value"].max() == 15_109 / 2
    assert result.telemetry.filter(metric="energy_j")["value"].max() == pytest.approx(50 * 40)


def test_readings_beside_checkpoints_need_placements_and_pods_of_the_workload(tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"record": "timeline"}, "record: found 'timeline', expected placements or all"),
        ({"inflation": 2.0}, "inflation: found 2.0, expected nothing: readings beside checkpoints"),
        ({"policy": "coolest"}, "a run whose policy sees readings keeps no checkpoints"),
    )
    for options, text in cases:
        run = {"cluster": "openb:10", "workload": "synth:openb?pods=9", **options}
        with pytest.raises(ScenarioError, match=text):
            fs.simulate(**run, telemetry=9, out=tmp_path / "r", checkpoint_pods=3)
        assert not list(tmp_path.iterdir())


def test_the_ideal_has_none() -> None:
    with pytest.raises(ScenarioError, match="telemetry: found 9, expected none: the ideal"):
        fs.simulate("gavel:1:1:1", "synth:gavel?jobs=2", "max_min_fairness", telemetry=9, ideal=True)


def test_the_table_is_the_same_in_files_and_in_memory(tmp_path: Path) -> None:
    texts = ("openb:5", "synth:openb?pods=40&seed=3", "fgd")
    held = fs.simulate(*texts, telemetry=7200)
    written = fs.simulate(*texts, telemetry=7200, out=tmp_path / "a")
    assert written.telemetry.equals(held.telemetry) and len(held.telemetry)
    held.save(tmp_path / "b")
    for folder in ("a", "b"):
        loaded = fs.Result.load(tmp_path / folder)
        assert loaded.telemetry.equals(held.telemetry) and "telemetry" in loaded.frames
        assert len(loaded.scan("telemetry").collect()) == len(held.telemetry)
    assert not fs.simulate(*texts).recorded("telemetry")


def test_a_device_that_no_catalogue_has_follows_its_nodes() -> None:
    def cluster(*more: dict[str, object]) -> fs.Cluster:
        given = {"cpu_milli": 8000, "memory_mib": 65536, "num_gpu": 2, "gpu_model": "MyGPU", "gpu_idle_w": 50.0,
                 "gpu_peak_w": 300.0, "gpu_memory_mib": 24576}  # fmt: skip
        return fs.Cluster.from_arrow(pl.DataFrame([given | part for part in more]))

    device = Telemetry().device("MyGPU", cluster({}, {}))
    assert (device.memory_mib, device.idle_w, device.peak_w) == (24576, 50.0, 300.0)
    with pytest.raises(InputError, match="GPU model MyGPU: gpu_memory_mib: found nothing, expected the same"):
        Telemetry().device("MyGPU", cluster({"gpu_memory_mib": None}))
    with pytest.raises(InputError, match="GPU model MyGPU: found 2 kinds of devices"):
        Telemetry().device("MyGPU", cluster({}, {"gpu_peak_w": 250.0}))
