"""Sweep files to begin with: each is a good one, and flags mean what they mean in the original."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.experiments.sweep.sweep import Sweep
from fastsim.experiments.sweep.templates import (
    GAVEL_KINDS,
    KINDS,
    command_options,
    flags_as_keys,
    sweep_text,
    toml_text,
    unused_flags,
)  # fmt: skip

RUNS = {"fgd": 960, "pwr": 1320, "gavel-continuous": 252, "gavel-static": 75, "synergy": 72, "sia": 18}
CONTINUOUS, STATIC = GAVEL_KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_good_sweep(kind: str) -> None:
    assert len(Sweep(tomllib.loads(sweep_text(kind)), kind).runs) == RUNS[kind]


def test_published_lists_take_their_place(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    pods += "scheduled_time\n"
    for name in ("default", "cpu050", "multigpu20"):
        (tmp_path / f"openb_pod_list_{name}.csv").write_text(pods + "p-0,1000,1024,1,500,,LS,Running,0,10,1\n")
    with pytest.raises(InputError, match=r"no openb_node_list_gpu_node\.csv"):
        sweep_text("fgd", tmp_path)
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n"
    )
    assert len(Sweep(tomllib.loads(sweep_text("fgd", tmp_path))).runs) == 3 * 10 * 6
    assert len(Sweep(tomllib.loads(sweep_text("pwr", tmp_path))).runs) == 2 * 10 * 11
    with pytest.raises(InputError, match=r"no openb_pod_list_\*\.csv"):
        sweep_text("fgd", tmp_path / "nowhere")


def test_mistakes() -> None:
    for given, match in (
        (("moon",), "sweep init: found 'moon', expected one of fgd"),
        (("synergy", None, ["-p"]), "no flags: synergy takes none"),
        (("sia", "x"), "no such option: sia needs no files"),
    ):
        with pytest.raises(ScenarioError, match=match):
            sweep_text(*given)


def test_toml_is_read_back() -> None:
    keys = {"a": [1, 'x"y'], "steps": {"from": 0.0, "to": 1.5, "points": 3}, "on": True}
    keys |= {"t": {"gavel:1:1:1": {"fifo": 2.0}}}
    assert tomllib.loads(toml_text(keys)) == keys


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


def test_flags_of_the_process_are_options_of_the_command() -> None:
    words = "-a 0 -b 1 -l logs -j 4 -t 600"
    assert command_options(CONTINUOUS, words.split()) == "--out logs --workers 4 --timeout 600"
    assert command_options(STATIC, []) == "--out runs --workers 2" and unused_flags(STATIC, []) == []
    for words in ("-a 0 -b 1 -j four", "-a 0 -b 1 -t soon"):
        with pytest.raises(ScenarioError, match=r"run_sweep_continuous\.py"):
            command_options(CONTINUOUS, words.split())


def test_flags_without_a_meaning_are_named() -> None:
    words = ["-a", "0", "-b", "1", "--solver", "ECOS", "--checkpoint-threshold", "40"]
    solver, checkpoint = unused_flags(CONTINUOUS, words)
    assert solver.startswith("--solver: ") and checkpoint.endswith("fastsim run --checkpoint, fastsim fork")
    with pytest.raises(ScenarioError, match="fastsim sweep knee FILE"):
        flags_as_keys(CONTINUOUS, ["-a", "0", "-b", "1", "-u", "0.9"])
