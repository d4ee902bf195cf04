"""What every engine is to a scenario: it prepares a run, which is played and has messages for the user."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from fastsim.errors import PolicyError
from fastsim.workload import schema as s

if TYPE_CHECKING:
    import polars as pl

    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.result import Result
    from fastsim.engine.tables import FrameMakers
    from fastsim.scenario.scenario import Scenario
    from fastsim.simulation.run_warnings import Message
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

Clock = tuple[float, float]
"""Seconds of wall and of CPU."""


class PreparedJobs(Protocol):
    """The objects of a scenario of jobs."""

    @property
    def cluster(self) -> Cluster:
        """The nodes."""

    @property
    def messages(self) -> Sequence[Message]:
        """Warnings about columns without effect."""


Inputs = TypeVar("Inputs", bound=PreparedJobs)


class Hooks(NamedTuple):
    """What goes along with a run.

    ``progress`` takes the number of pods that have arrived. ``writer`` writes checkpoints and may have one to resume.
    ``folder`` takes the tables.
    """

    progress: Callable[[int], None] | None = None
    writer: Any = None
    folder: Path | None = None

    def schedule(self) -> tuple[Any, Any]:
        """When a run in rounds writes checkpoints, and the one that it begins with; None without a writer."""
        return (None, None) if self.writer is None else (self.writer.schedule, self.writer.start)


class PreparedRun(Protocol):
    """The objects of a scenario for one engine, ready to be played."""

    @property
    def cluster(self) -> Cluster:
        """The nodes."""

    @property
    def ahead(self) -> Sequence[Message]:
        """Warnings for the user before the run is played."""

    def play(self, hooks: Hooks) -> Result:
        """The result; its tables are in the folder already if the engine writes them as they come."""

    def messages(self) -> Sequence[Message]:
        """Warnings for the user about what the run saw."""

    def facts(self) -> dict[str, Any]:
        """What the workload and the plan decide about options without effect, as ``OptionFacts`` has it."""


class Engine(NamedTuple):
    """An engine of runs.

    ``prepared`` makes a run of a scenario and its policy. ``writer`` is the class that writes checkpoints and ``state``
    that of a checkpoint, None for an engine that keeps none. ``places`` is what it places: pods or jobs.
    """

    prepared: Callable[[Scenario, Any], PreparedRun]
    writer: Callable[..., Any] | None
    state: type | None
    places: str


@dataclass(frozen=True)
class JobsRun(Generic[Inputs]):
    """A run of jobs, or of pods that share GPUs: its objects, and when it was prepared."""

    scenario: Scenario
    inputs: Inputs
    began: Clock
    ahead: Sequence[Message] = ()

    @property
    def cluster(self) -> Cluster:
        """The nodes."""
        return self.inputs.cluster

    def messages(self) -> Sequence[Message]:
        """Warnings about columns without effect."""
        return self.inputs.messages

    def facts(self) -> dict[str, Any]:
        """Nothing: no option hangs on the workload."""
        return {}

    def result_of(
        self, summary: pl.DataFrame, tables: FrameMakers, provenance: dict[str, Any], timing: dict[str, Any]
    ) -> Result:
        """The result; tables besides the summary are made when they are asked for."""
        from fastsim.engine.result import Result
        from fastsim.engine.tables import LazyFrames

        return Result(LazyFrames({"summary": summary}, tables), provenance, timing)


def clock() -> Clock:
    """The time now."""
    return time.perf_counter(), time.process_time()


def timing_of(began: Clock, writer: Any, jobs: int, **more: Any) -> dict[str, Any]:
    """Seconds of a run since it began and of the runs that it resumes, jobs a second, and ``more``."""
    spent = (0.0, 0.0) if writer is None else writer.spent_s
    wall_s, cpu_s = (now - then + before for now, then, before in zip(clock(), began, spent, strict=True))
    rounds = {"rounds_per_s": more.pop("rounds") / wall_s} if "rounds" in more else {}
    return {"wall_s": wall_s, "cpu_s": cpu_s, **more, "pods_per_s": jobs / wall_s, **rounds}


def provenance_of(cluster: Cluster, workload: Workload, typical: TypicalPods, **more: Any) -> dict[str, Any]:
    """Names and checksums of what went into a run, the build that made it, and ``more``."""
    from fastsim.engine.result import provenance_of_build

    return {
        "cluster": {"nodes": len(cluster), "sha256": cluster.checksum()},
        "workload": {"name": workload.name, "sha256": workload.checksum()},
        "typical_pods": len(typical.count), **provenance_of_build(), **more,
    }  # fmt: skip


def refuse_adaptive_jobs(workload: Workload, policy: Any) -> None:
    """PolicyError for adaptive jobs, which have no durations and would run for ever."""
    columns = workload.columns
    if {s.WORKLOAD, s.BATCH_SIZE} <= set(columns) and s.DURATION_S not in columns:
        found, expected = "adaptive jobs, which have no durations", "pods, or jobs with a column duration_s"
        raise PolicyError(f"policy {policy}", found, expected, "policies served, sia and pollux are for them")
