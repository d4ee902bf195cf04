"""The best points of recorded queues: the sum of speedups is the original's, and everything fits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from fastsim.cluster.server import Server
from fastsim.performance.sensitivity import QUIRKS, Sensitivity
from fastsim.policies.programs.opt_allocation import best_points, spread
from fastsim.policies.solvers.highs import Solver
from tests.golden.synergy import synergy

pytestmark = pytest.mark.skipif(not synergy.SYNERGY.exists(), reason="reference data not found (set FASTSIM_SHARED)")
SERVER = Server(8, 24, 500, 500, 40)
QUEUES = synergy.lines("opt_micro.jsonl.gz") if synergy.SYNERGY.exists() else []


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: str(queue["id"]))
def test_the_sum_of_speedups_is_the_recorded_one(queue: dict[str, Any]) -> None:
    count, solver = Counter((model, gpus) for model, gpus in queue["queue"]), Solver("vertex")
    demands = Sensitivity.default().demands(sorted(count), SERVER, QUIRKS)
    servers, counts = queue["servers"], [count[kind] for kind in sorted(count)]
    objective, choices = best_points(demands, counts, servers, solver)
    assert objective == pytest.approx(queue["ilp_objective"], rel=0, abs=1e-9)  # sums of decimals in another order
    assert np.bincount([c.kind for c in choices], [c.jobs for c in choices]).tolist() == counts
    assert sum(c.jobs * c.cpu for c in choices) <= servers * SERVER.cpus
    # 20.83 is no binary number: the recorded solver lets as much pass.
    assert sum(c.jobs * c.memory_gb for c in choices) <= servers * SERVER.memory_gb + 1e-6
    stands = spread(choices, SERVER, servers, solver)
    jobs = [(c.num_gpu, c.cpu, c.memory_gb) for c in choices for _ in range(c.jobs)]
    assert np.bincount(stands.job, stands.share).tolist() == pytest.approx([1.0] * len(jobs))
    for needed, limit in zip(np.array(jobs).T, (SERVER.gpus, SERVER.cpus, SERVER.memory_gb), strict=True):
        used = np.bincount(stands.server, stands.share * needed[stands.job], minlength=servers)
        assert (used <= limit + 1e-6).all()  # the linear solver's own tolerance
    assert len(stands.job) <= len(jobs) + 3 * servers + len(choices)  # a corner splits few jobs
