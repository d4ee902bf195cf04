"""Rates, prices and windows written as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.errors import InputError, ScenarioError
from fastsim.scenario.round_texts import check_rates, prices_from, rates_from, sensitivity_from, window_from

PODS = fs.Workload.synth("openb", pods=20)
JOBS = fs.Workload.synth("gavel", jobs=3)


def test_rates_follow_from_the_workload_if_none_are_given() -> None:
    assert rates_from(None, JOBS, ["v100"]).gpu_models == ("k80", "p100", "v100")
    pods = rates_from(None, PODS, ["T4"])
    assert pods.gpu_models == ("T4",)
    assert (pods.alone__kg == 1).all()


def test_rates_come_from_files(tmp_path: Path) -> None:
    fs.Oracle.default().to_parquet(tmp_path / "rates.parquet")
    read = rates_from(str(tmp_path / "rates.parquet"), JOBS, ["v100"])
    assert np.array_equal(read.alone__kg, rates_from("default", JOBS, ["v100"]).alone__kg)
    assert rates_from(read, JOBS, []) is read


def test_a_csv_file_has_rates_or_sensitivities_as_its_columns_say(tmp_path: Path) -> None:
    cluster = fs.Cluster.from_gavel("1:1:1")
    file = tmp_path / "rates.csv"
    file.write_bytes(b"\xef\xbb\xbfworkload,gpu_model,num_gpu,steps_per_s\nlm,v100,1,3.5\nlm,k80,1,0.5\n")
    assert sensitivity_from(str(file), cluster) is None
    assert rates_from(str(file), JOBS, ["v100"]).alone__kg.tolist() == [[0.5, 3.5]]
    frame = pl.read_csv(file)
    assert fs.Oracle.from_table(frame).alone__kg.tolist() == [[0.5, 3.5]]
    file.write_text("workload,point,cpu,memory_gb,speedup\nlm,demand,3,60,1.5\n")
    with pytest.raises(InputError, match="iteration_s"):
        sensitivity_from(str(file), cluster)


@pytest.mark.parametrize("text", ["nothing.json", "rates.txt", "defaults"])
def test_rates_that_are_not_there_are_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="rates"):
        check_rates(text)


def test_prices_are_fixed_or_recorded() -> None:
    fixed = prices_from("fixed?v100=2.5&k80=0.5", ("k80", "v100"))
    assert fixed is not None
    assert fixed.at(0).tolist() == [0.5, 2.5]
    assert prices_from(fixed, ("v100",)).at(9).tolist() == [2.5]  # type: ignore[union-attr]
    assert prices_from(None, ("v100",)) is None


@pytest.mark.parametrize("text", ["fixed?v100=cheap", "nowhere", "fixed?k80=1"])
def test_prices_without_sense_are_refused(text: str) -> None:
    with pytest.raises((ScenarioError, InputError), match="prices"):
        prices_from(text, ("v100",))


def test_a_model_without_a_price_says_what_to_add() -> None:
    with pytest.raises(InputError, match=r"none of k80, expected .* as of v100; add &k80=PRICE"):
        prices_from("fixed?v100=2", ("v100", "k80"))


def test_windows() -> None:
    assert window_from("4000:5000") == (4000, 5000) == window_from([4000, 5000])
    assert window_from(None) is None
    for text in ("5", "a:b", "5:5", "-1:4", 7, "0:99999999999999999999"):
        with pytest.raises(ScenarioError, match="window"):
            window_from(text)


@pytest.mark.parametrize("policy", ["optimus", "monitored"])
def test_nodes_that_come_or_go_are_refused(policy: str) -> None:
    nodes = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=8).nodes
    for name, words in (("add_s", "joins at 5000 s"), ("remove_s", "leaves at 5000 s")):
        changed = nodes.set_column(nodes.schema.get_field_index(name), name, pa.array([None, 5000.0]))
        with pytest.raises(
            ScenarioError, match=f"cluster: found node node-0001 that {words}, expected nodes that stay"
        ):
            fs.simulate(fs.Cluster.from_arrow(changed), "synth:gavel?jobs=2", policy)
