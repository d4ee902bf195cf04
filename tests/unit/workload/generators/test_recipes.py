"""Generators by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fastsim.workload.generators.recipes import GENERATORS, HOMES


def test_every_name_has_a_generator() -> None:
    assert [*GENERATORS] == [*HOMES] and len(GENERATORS) == len(HOMES)
    assert all(callable(generator) for generator in GENERATORS.values())
    assert "philly" not in GENERATORS
    with pytest.raises(KeyError):
        GENERATORS["philly"]


def test_a_run_of_pods_loads_neither_generators_nor_engines_of_jobs() -> None:
    code = (
        "import sys, fastsim as fs; fs.simulate('openb:5', 'synth:openb?pods=5&seed=1', 'fgd');"
        "print(*(name for name in sys.modules if name.startswith('fastsim.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "fastsim.workload.generators.openb" in loaded
    assert not {"fastsim.workload.generators.gavel", "fastsim.engine.adaptive.plan"} & {*loaded}
