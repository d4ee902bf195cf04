"""Flags of Gavel's sweep scripts and the keys they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.experiments.sweep.gavel_flags import KINDS, flags_as_keys

CONTINUOUS, STATIC = KINDS


def test_what_the_scripts_do_without_flags() -> None:
    keys = flags_as_keys(CONTINUOUS, ["-a", "0", "-b", "6"])
    assert len(keys.pop("policy")) == 22
    assert keys == {
        "cluster": ["gavel:25:0:0", "gavel:12:12:0", "gavel:16:8:0", "gavel:8:8:8"], "policy_names": "gavel",
        "compat": "gavel", "seed": [0, 1, 2, 3, 4], "round_s": 360.0, "window": "0:5000",
        "rate_per_hour": {"from": 0.0, "to": 6.0, "points": 20},
    }  # fmt: skip


def test_every_flag_of_the_load_sweep() -> None:
    words = """-l logs -j 4 -t 100 --solver ECOS -v -p fifo gandiva -c 3:3:3 --num_gpus_per_server 3:1:1 --seeds 1
        -i 720 -f 100 --cutoff-throughputs-file cut.json --throughputs-file rates.json -m --generate-multi-priority-jobs
        --simulate-steady-state --checkpoint-threshold 9 --profiling_percentages 0.5 1.0 --num_reference_models 4
        --ideal -a 1 -b 2 -n 3 -s 5 -e 9"""
    assert flags_as_keys(CONTINUOUS, words.split()) == {
        "cluster": ["gavel:3:3:3?per_server=3:1:1"], "policy_names": "gavel", "policy": ["fifo", "gandiva"],
        "compat": "gavel", "seed": [1], "round_s": 720.0, "rate_per_hour": {"from": 1.0, "to": 2.0, "points": 3},
        "window": "5:9", "priorities": True, "warm_start": True, "cutoff_rates": "cut.json", "profiling": [0.5, 1.0],
        "references": [4], "durations": 100, "rates": "rates.json", "ideal": True, "multi_gpu": True,
    }  # fmt: skip


def test_flags_of_the_static_sweep(tmp_path: Path) -> None:
    words = f"--per_instance_type_prices_dir {tmp_path} --available_clouds aws gcp --assign_SLOs --enable_global_queue"
    keys = flags_as_keys(STATIC, [*words.split(), *["-p", "fifo", "-a", "0", "-b", "10", "-n", "3"]])
    assert keys["jobs"] == {"from": 0, "to": 10, "points": 3} and "window" not in keys
    assert keys["prices"] == f"{tmp_path}?clouds=aws,gcp" and keys["slos"] and keys["global_queue"]


@pytest.mark.parametrize("flags", ["-a 0", "-a 0 -b x", "-a 0 -b 1 --moon", "-a 0 -b 1 -u 3"])
def test_mistakes_are_one_error(flags: str) -> None:
    with pytest.raises(ScenarioError, match=r"run_sweep_continuous\.py"):
        flags_as_keys(CONTINUOUS, flags.split())
    with pytest.raises(InputError, match="no such folder"):
        flags_as_keys(STATIC, ["--per_instance_type_prices_dir", "nowhere", *["-a", "0", "-b", "1"]])
