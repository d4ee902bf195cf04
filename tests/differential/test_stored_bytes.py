"""A checkpoint holds nothing that was in memory before: whatever the allocator hands out, its arrays are the same."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.engine.checkpoints.folder import STATE
from tests.cli.terminal import environment
from tests.engines import RUNS

ADAPTIVE: dict[str, Any] = {"cluster": "sia:6:2:3", "workload": "synth:sia?jobs=6&seed=1"}
SCENARIOS: list[dict[str, Any]] = [
    RUNS["pods"] | {"failures": "mtbf=20000,mttr=2000", "on_node_loss": "requeue"},
    RUNS["shares"],
    RUNS["shares"] | {"policy": "max_min_fairness(mode=packed)"},
    RUNS["orders"],
    *(ADAPTIVE | {"policy": policy} for policy in ("pollux(generations=5)", "sia", "optimus", "rotation")),
]
FILLED = ("90", "165")
"""Values of MALLOC_PERTURB_: fresh memory is filled with 0xa5 (negative numbers), or with 0x5a (huge ones)."""


def print_states(folder: Path) -> None:
    """Print a digest of every array of a checkpoint of every scenario."""
    warnings.simplefilter("ignore")
    for number, scenario in enumerate(SCENARIOS):
        out = folder / str(number)
        fs.simulate(**scenario, out=out, checkpoint_pods=3, keep_checkpoint=True)
        with zipfile.ZipFile(out.with_suffix(".checkpoint") / STATE) as state:
            for name in sorted({*state.namelist()} - {"meta.npy", "header.npy"}):  # these hold wall times
                print(number, name, hashlib.sha256(state.read(name)).hexdigest())


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""),
                    reason="fills fresh memory by a setting of glibc")  # fmt: skip
def test_states_are_the_same_in_any_memory(tmp_path: Path) -> None:
    printed = []
    for value in FILLED:
        folder = tmp_path / value
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", "import sys; from pathlib import Path; from tests.differential import "
             "test_stored_bytes; test_stored_bytes.print_states(Path(sys.argv[1]))", folder],
            env=environment(Path(__file__).parents[2]) | {"MALLOC_PERTURB_": value}, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    assert len(printed[0]) == len(printed[1]) > 60
    assert [one for one, other in zip(*printed, strict=True) if one != other] == []
