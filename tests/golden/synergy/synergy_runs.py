"""The recorded runs of the Synergy simulator as runs of ours. Nothing here names a run."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.driving.drive import Stop
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.run import OrderedOutcome, ordered_loop_of
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.rounds import PreparedRounds, driven, prepared_rounds
from tests.golden.synergy.synergy import SYNERGY, attached

ORDERS = {"FIFO": "fcfs", "SRTF": "srtf", "LAS": "las", "FTF": "ftf", "DRF": "drf", "TETRIS": "tetris"}
"""The original's names of its orders, and ours."""
GPUS, CPUS = 8, 24
"""Of a server, where nothing else is recorded."""
NAMES = {"job_id": "id", "first_start_s": "first_s", "finish_s": "finish_s", "rounds_run": "rounds",
         "executed_iters": "run"}  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """One recorded run."""

    id: str

    @cached_property
    def told(self) -> dict[str, Any]:
        """All that is recorded of it as a whole."""
        found: dict[str, Any] = json.loads((SYNERGY / "runs" / f"{self.id}.json").read_text())
        return found

    @property
    def policy(self) -> str:
        """Our policy under the original's text; there, no mechanism means greedy."""
        order, *words = self.told["spec"]["scheduler"].split("+")
        if not {"fair", "tune", "opt"} & set(words):
            words.append("greedy")
        return " + ".join([ORDERS[order], *words])

    @property
    def replayed(self) -> bool:
        """Whether the jobs come from a file; otherwise they go on arriving until those of the window are done."""
        return not self.told["stream"].startswith("stream_")

    @property
    def cluster(self) -> str:
        """Its servers: as its text has them, else so many as have the GPUs of its rounds."""
        text = self.told["spec"].get("config", "")
        if " servers " in text:
            servers, _, cpus = re.findall(r"\d+", text)[:3]
            return f"synergy:{servers}?cpus={cpus}"
        sizes = {each["config"]: each["per_server_size"] for each in attached().values()}
        gpus, cpus, *_ = sizes.get(text.removeprefix("configs/"), (GPUS, CPUS))
        first = self.rounds().row(0, named=True)
        return f"synergy:{(first['gpus_alloc'] + first['free_gpus']) // gpus}?cpus={cpus}"

    @property
    def scenario(self) -> Scenario:
        """The run as a scenario of ours."""
        told = self.told["spec"]
        first, last = told["window"]
        return Scenario(
            cluster=self.cluster,
            workload=f"synergy:{SYNERGY / 'traces'}/{self.told['stream']}.csv",
            policy=self.policy, rates="synergy", round_s=300.0, compat="synergy",
            begin_s=1.0 if told.get("static") else None, window=None if self.replayed else f"{first}:{last}",
            record="summary",
        )  # fmt: skip

    def prepared(self) -> PreparedRounds:
        """All that the run needs."""
        return prepared_rounds(self.scenario, registry.parse(self.policy))

    def played(self) -> OrderedOutcome:
        """Our run."""
        run = driven(self.scenario, self.prepared(), {})
        assert isinstance(run, OrderedOutcome)
        return run

    def jobs(self) -> pl.DataFrame:
        """What became of its jobs."""
        return pl.read_csv(SYNERGY / "runs" / f"{self.id}.jobs.csv.gz", infer_schema_length=None).rename(NAMES)

    def rounds(self) -> pl.DataFrame:
        """Its rounds, without those in which there was no job."""
        rows = pl.read_csv(SYNERGY / "runs" / f"{self.id}.rounds.csv.gz", infer_schema_length=None)
        return rows.filter(pl.col("n_runnable") > 0) if "n_runnable" in rows.columns else rows

    def placed(self) -> dict[float, list[list[Any]]]:
        """Who held what in some rounds, in the order in which it was given out."""
        path = SYNERGY / "runs" / f"{self.id}.alloc.json.gz"
        with gzip.open(path, "rt") as text:
            return {float(time_s): rows for time_s, rows in json.load(text).items()}


def recorded() -> list[Recorded]:
    """Every recorded run."""
    return [Recorded(path.stem) for path in sorted((SYNERGY / "runs").glob("*.json"))]


Held = tuple[int, list[int], float, float, float, float | None]
"""Job, GPUs, CPUs, GB, steps it has done, speedup; None for a job that is done."""


def held_by_round(made: PreparedRounds) -> Any:
    """(time, rows of ``Held``) of every round, from a loop that is stopped after each of them."""
    assert isinstance(made.plan, OrderPlan) and made.needs is not None
    loop = ordered_loop_of(made.needs, made.plan, made.options, {"record_tasks": True})
    loop.feed(*next(iter(made.batches)), True)
    size = made.needs.num_gpu__s[0]
    while True:
        stop = loop.advance(1)
        ended, tasks, _ = loop.log.drained()
        loop.drained()
        if tasks:
            yield _time(tasks), _held(loop, ended, tasks, size)
        if stop == Stop.DONE:
            return


def _time(tasks: bytes) -> float:
    return float(np.frombuffer(tasks, MOMENT)["t"][0])


def _held(loop: Any, ended: bytes, tasks: bytes, size: int) -> list[Held]:
    active = np.frombuffer(loop.table.rows(), GANG)
    known: npt.NDArray[Any] = np.concatenate([active, np.frombuffer(ended, GANG)])
    done = dict(zip(known["id"].tolist(), known["run"].tolist(), strict=True))
    speedup = dict(zip(active["id"].tolist(), loop.ordered_jobs.speedups(), strict=True))
    seats: dict[int, list[Any]] = {}
    for row, server, bits, share in loop.allocation.taken():
        gpus = [server * size + gpu for gpu in range(size) if bits >> gpu & 1]
        seats.setdefault(row, []).append((gpus, share))
    ids = np.frombuffer(tasks, MOMENT)["id"].tolist()
    return [
        (job, sorted(gpu for gpus, _ in parts for gpu in gpus), sum(share[0] for _, share in parts) / 1000,
         sum(share[1] for _, share in parts) / 1024, done[job], speedup.get(job))
        for job, parts in zip(ids, seats.values(), strict=True)
    ]  # fmt: skip
