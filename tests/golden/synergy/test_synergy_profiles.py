"""What profiles ask servers for, as the original attaches them: every number to the last bit."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.cluster.server import Server
from fastsim.errors import InputError
from fastsim.performance.sensitivity import QUIRKS, Sensitivity
from tests.golden.synergy import synergy

pytestmark = pytest.mark.skipif(not synergy.SYNERGY.exists(), reason="reference data not found (set FASTSIM_SHARED)")
ROUND_S, DURATION_S = 300.0, 10_000.0


def named(value: Any) -> str:
    return f"{value['model']}-{value['gpus']}" if isinstance(value, dict) else ""


@pytest.mark.parametrize(("cpus_per_gpu", "size", "expected"), synergy.attachments(), ids=named)
def test_a_profile_is_attached(cpus_per_gpu: float, size: list[float], expected: dict[str, Any]) -> None:
    sensitivity, server = Sensitivity.default(cpus_per_gpu), Server(int(size[0]), *size[1:])
    kinds = [(expected["model"], expected["gpus"])]
    if "error" in expected:
        with pytest.raises(InputError, match="just the fair share"):
            sensitivity.demands(kinds, server, QUIRKS)
        assert sensitivity.demands(kinds, server).speedup__k[0] == sensitivity.profile(expected["model"]).speedup
        return
    found = sensitivity.demands(kinds, server, QUIRKS)
    names = ("cpu_demand", "mem_demand", "sspeed_demand", "speedup", "iter_time")
    columns = (found.cpu__k, found.memory_gb__k, found.storage_mb_s__k, found.speedup__k, found.iteration_s__k)
    assert [column.tolist() for column in columns] == [[expected[name]] for name in names]
    fair, met = found.iterations(ROUND_S)
    assert (fair[0], met[0]) == (expected["iters_per_round_fair"], expected["iters_per_round_speedup"])
    assert int(DURATION_S / found.iteration_s__k[0]) == expected["total_iters_for_duration_10000s"]
    grid, steps = found.grids[0], found.grid_iterations(ROUND_S)[0]
    assert grid is not None and steps is not None
    if expected["gpus"] == 1:  # recorded once for each model
        assert grid.speedup__cm.tolist() == expected["tput_matrix_cpu_x_mem"]
        assert steps.tolist() == expected["opt_iters_per_round"]
