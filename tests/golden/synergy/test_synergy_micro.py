"""One round of Synergy's simulator at a time: who gets which GPUs, CPUs, memory and storage, and what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastsim.cluster.server import GB_MIB, Server
from fastsim.engine.orders.run import ordered_loop_of
from fastsim.engine.orders.server_demands import ServerDemands, needs_on
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import ORDERED_QUIRKS, Job, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.performance.sensitivity import Sensitivity
from fastsim.policies import registry
from fastsim.scenario.compat import switches_on
from tests.golden.synergy.synergy import SYNERGY, lines

SNAPSHOTS = lines("micro_alloc.jsonl.gz") if SYNERGY.exists() else []
MECHANISMS = {
    "fair": "fcfs + fair", "tune": "fcfs + tune", "greedy": "fcfs + greedy", "fair+place": "fcfs + fair + place",
    "tune+place": "fcfs + tune + place", "greedy+place": "fcfs + greedy + place",
    "LAS:tune": "las(las_serves_few=True) + tune",
}  # fmt: skip
STEPS = 10**9
"""Of every job."""


def tables(snapshot: dict[str, Any]) -> tuple[Setting, ServerDemands]:
    """The setting of a snapshot; profiles are those of 3 CPUs for each GPU, whatever the servers have."""
    shape = snapshot["cluster"]
    server = Server(shape["gpus"], shape["cpus"], shape["mem"], shape["sspeed"])
    model = Sensitivity.default(3)
    oracle = model.oracle(("v100",))
    setting = Setting(("v100",), np.array([shape["servers"] * server.gpus]), oracle, oracle.alone__kg[:, 0])
    cap = np.tile([server.cpus * 1000, server.memory_gb * GB_MIB, server.storage_mb_s], (shape["servers"], 1))
    servers = ((server.gpus,) * shape["servers"], cap.astype(np.float64), (0, shape["servers"]))
    return setting, needs_on(servers, setting, model, server, switches_on("synergy"))


def played(snapshot: dict[str, Any], policy: str) -> Any:
    """The loop after the round."""
    setting, needs = tables(snapshot)
    made: Any = registry.parse(policy)
    compat = switches_on("synergy") & frozenset(ORDERED_QUIRKS)
    options = RoundOptions(round_s=300.0, begin_s=1.0, compat=compat)
    loop = ordered_loop_of(needs, made.begin(setting), options, {"record_tasks": True})
    index = setting.oracle.kind_index
    jobs = [Job(i * 0.001, index[model, gpus], gpus, STEPS) for i, (model, gpus) in enumerate(snapshot["queue"])]
    loop.feed(*JobBatch.of(jobs), True)
    loop.advance(1)
    return loop


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=[str(snapshot["id"]) for snapshot in SNAPSHOTS])
def test_a_round_gives_out_the_same(snapshot: dict[str, Any], mechanism: str) -> None:
    loop, expected = played(snapshot, MECHANISMS[mechanism]), snapshot["results"][mechanism]
    size = snapshot["cluster"]["gpus"]
    order = np.frombuffer(loop.log.drained()[1], MOMENT)["id"].tolist()
    assert order == expected["run_order"]
    seats: dict[int, dict[str, list[float]]] = {}
    gpus: dict[int, list[int]] = {}
    for row, server, bits, share in loop.allocation.taken():
        parts = (share[0] / 1000, share[1] / GB_MIB, share[2])
        seats.setdefault(row, {})[str(server)] = [float(bits.bit_count()), *parts]
        gpus.setdefault(row, []).extend(server * size + gpu for gpu in range(size) if bits >> gpu & 1)
    run, speedup = np.frombuffer(loop.table.rows(), GANG)["run"], loop.ordered_jobs.speedups()
    for job in expected["jobs"]:
        row = job["id"]
        assert sorted(gpus.get(row, [])) == sorted(job["alloc_gpu_ids"] or [])
        assert seats.get(row, {}) == (job["alloc_per_server"] or {})
        assert run[row] == (job["iters_this_round"] or 0)
        assert speedup[row] == job["speedup_now"]
    left = [[free, cpu / 1000, memory / GB_MIB, storage] for free, (cpu, memory, storage) in loop.allocation.left()]
    assert left == [free[:4] for free in expected["servers_free_after"]]
