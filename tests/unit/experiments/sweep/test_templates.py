"""Sweep files to begin with: each is a good one, and flags mean what they mean in the original."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.experiments.sweep.sweep import Sweep
from fastsim.experiments.sweep.templates import KINDS, sweep_text, toml_text

RUNS = {"fgd": 960, "pwr": 1320, "gavel-continuous": 252, "gavel-static": 75, "synergy": 72, "sia": 18}


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
