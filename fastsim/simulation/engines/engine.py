"""The interface of every engine to scenarios: it prepares a run, which is played and has messages for the user."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

from fastsim.engine.checkpoints.clock import Checkpoints, CheckpointSchedule
from fastsim.engine.checkpoints.folder import STATE
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.writer import CheckpointWriter
from fastsim.errors import PolicyError, ScenarioError
from fastsim.policies.registry import policy_of
from fastsim.scenario import round_texts, run_inputs
from fastsim.workload import schema as s

if TYPE_CHECKING:
    import polars as pl

    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.result import Result
    from fastsim.engine.rounds.driver import RunHooks
    from fastsim.engine.tables import FrameMakers
    from fastsim.scenario.run_inputs import RunInputs
    from fastsim.scenario.scenario import Scenario
    from fastsim.simulation.run_warnings import Message
    from fastsim.telemetry.telemetry import Telemetry
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods
    from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

Clock = tuple[float, float]
"""Seconds of wall and of CPU."""


@dataclass(frozen=True, kw_only=True)
class PreparedJobs:
    """The objects of a scenario of jobs, whichever engine plays them."""

    cluster: Cluster
    workload: Workload
    typical: TypicalPods
    noticed: Sequence[Message] = ()

    @classmethod
    def of(cls, scenario: Scenario, read: RunInputs, **own: Any) -> Self:
        """The objects of a scenario: what was read for it, its typical pods, and those of its engine alone."""
        typical = run_inputs.typical_from(scenario.typical, read.untuned, read.cluster)
        return cls(cluster=read.cluster, workload=read.workload, typical=typical, **own)

    @property
    def messages(self) -> Sequence[Message]:
        """Warnings for the user, about columns without effect among others."""
        return self.noticed

    @property
    def typical_count(self) -> int:
        """Typical pods that fragmentation is measured by; 1 if there are none."""
        return max(self.typical.kept, 1)

    def metrics(self, scenario: Scenario, models: Sequence[str]) -> ClusterMetrics:
        """The metrics of a run in rounds on these GPU models, with a timeline if one is recorded."""
        from fastsim.engine.rounds.node_metrics import cluster_metrics_of

        timed, models = records_timeline(scenario), tuple(models)
        return cluster_metrics_of(self.cluster, self.typical, models, scenario.sample_s or 0.0, timed)


Inputs = TypeVar("Inputs", bound=PreparedJobs)
Prepare = Callable[["Scenario", Any], Inputs]
"""Makes the objects of a scenario for its policy."""
Play = Callable[["Scenario", Inputs, "RunHooks"], object]
"""Plays a scenario with its objects, and what goes along with the run."""
Progress = Callable[[int], None]
"""A function of a number of pods or jobs."""


class Hooks(NamedTuple):
    """What goes along with a run.

    ``progress`` takes the number of pods that have arrived. ``writer`` writes checkpoints and may have one to resume.
    ``folder`` takes the tables.
    """

    progress: Callable[[int], None] | None = None
    writer: Any = None
    folder: Path | None = None

    def of_rounds(self) -> RunHooks:
        """The same for a run in rounds; no tables, which are made when it has ended."""
        if self.writer is None:
            return {"progress": self.progress}
        return {"progress": self.progress, "checkpoint": self.writer.schedule, "resume": self.writer.start}


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


class Past(NamedTuple):
    """The past of a fork: a stored run up to a time.

    ``state`` is a checkpoint of the run and ``at_s`` the time, seconds. Tables go to the folder ``work``.
    """

    scenario: Scenario
    state: RunState
    at_s: float
    work: Path
    progress: Callable[[int], None] | None

    @property
    def start(self) -> RunState | None:
        """The state that the past is played from; None for the beginning, if the checkpoint is of a later time."""
        return self.state if self.state.now_s <= self.end_s else None

    @property
    def end_s(self) -> float:
        """The end of the past, seconds: a run that ends earlier has its own end."""
        return self.at_s if self.scenario.until_s is None else min(self.at_s, self.scenario.until_s)


class Keeper(NamedTuple):
    """How an engine keeps checkpoints.

    ``writer`` is the class that writes them. ``past`` plays the past of a fork, and gives its last state. ``forks`` are
    the fields of a scenario that may differ after a fork: everything else decided the past too. ``may_change`` are the
    properties of a stored state that such fields change.
    """

    writer: type[CheckpointWriter]
    past: Callable[[Past], RunState]
    forks: tuple[str, ...]
    may_change: tuple[str, ...] = ()


JOB_FORKS = ("policy", "until_s", "name", "log")
"""Fields of a scenario that may differ after a fork of a run of jobs."""


def past_of_jobs(prepare: Prepare[Inputs], play: Play[Inputs], run: Past) -> RunState:
    """The state of a run of jobs at a time, after the first round that ends then or later."""
    path = run.work / f".{STATE}.past.partial"
    note = CheckpointWriter(run.work, Checkpoints(), run.state.note["scenario"], run.start).note
    scenario = run.scenario.with_(until_s=run.end_s)
    inputs, at_end = prepare(scenario, policy_of(scenario.policy)), CheckpointSchedule(path, at_end=True, note=note)
    play(scenario, inputs, {"progress": run.progress, "checkpoint": at_end, "resume": run.start})
    state = RunState.read(path)
    path.unlink()
    return state


class Engine(NamedTuple):
    """An engine of runs.

    ``prepared`` makes a run of a scenario and its policy. ``places`` is what it places, with its kind: ``pods``,
    ``jobs`` or ``adaptive jobs``. ``keeper`` keeps checkpoints, None for an engine that has none.
    """

    prepared: Callable[[Scenario, Any], PreparedRun]
    places: str
    keeper: Keeper | None = None


class Figures(NamedTuple):
    """What a run of so many jobs leaves: its summary, makers of its tables, further figures beside its times."""

    jobs: int
    summary: pl.DataFrame
    tables: FrameMakers
    more: dict[str, Any]


class WithNodes(Protocol):
    """The objects of a scenario for any engine."""

    @property
    def cluster(self) -> Cluster:
        """The nodes."""


Objects = TypeVar("Objects", bound=WithNodes)


@dataclass(frozen=True)
class ScenarioRun(Generic[Objects]):
    """A run of a scenario with its objects."""

    scenario: Scenario
    inputs: Objects

    @property
    def cluster(self) -> Cluster:
        """The nodes."""
        return self.inputs.cluster

    def facts(self) -> dict[str, Any]:
        """Nothing: no option hangs on the workload."""
        return {}


@dataclass(frozen=True)
class JobsRun(ScenarioRun[Inputs]):
    """A run of jobs, or of pods that share GPUs, and when it was prepared."""

    began: Clock
    ahead: Sequence[Message] = ()

    def messages(self) -> Sequence[Message]:
        """Warnings about columns without effect."""
        return self.inputs.messages

    def play(self, hooks: Hooks) -> Result:
        """The result; tables besides the summary are made when they are asked for."""
        from fastsim.engine.result import Result
        from fastsim.engine.sampling.placement_telemetry import sampled
        from fastsim.engine.tables import LazyFrames

        jobs, summary, tables, more = self.figures(hooks)
        timing = timing_of(self.began, hooks.writer, jobs, **more)
        cluster, workload, typical = self.inputs.cluster, self.inputs.workload, self.inputs.typical
        provenance = provenance_of(cluster, workload, typical, **self.origins())
        result = Result(LazyFrames({"summary": summary}, tables), provenance, timing)
        return sampled(result, self.scenario, self.telemetry(), self.cluster, hooks.folder)

    def telemetry(self) -> Telemetry | None:
        """The telemetry that is taken from the placements; None without."""
        from fastsim.telemetry.telemetry import telemetry_from

        return telemetry_from(self.scenario.telemetry)

    @abstractmethod
    def figures(self, hooks: Hooks) -> Figures:
        """Play the jobs; what the run leaves."""

    @abstractmethod
    def origins(self) -> dict[str, Any]:
        """What went into the run beside its nodes and jobs."""

    @classmethod
    def engine(cls, prepare: Prepare[Inputs], places: str, play: Play[Inputs] | None = None) -> Engine:
        """The engine of such runs, which places so; ``play`` plays the past of forks, None if there are none."""
        keeper = None if play is None else Keeper(CheckpointWriter, partial(past_of_jobs, prepare, play), JOB_FORKS)
        return Engine(partial(prepared_run, cls, prepare), places, keeper)


def prepared_run(kind: type[JobsRun[Inputs]], prepare: Prepare[Inputs], scenario: Scenario, policy: Any) -> PreparedRun:
    """The run of a scenario, which began when its objects were asked for."""
    began = clock()
    return kind(scenario, prepare(scenario, policy), began)


def lasting_inputs(scenario: Scenario) -> RunInputs:
    """The nodes and jobs of a scenario; ScenarioError for nodes that come and go."""
    read = run_inputs.inputs_from(scenario.cluster, scenario.workload)
    return read._replace(cluster=round_texts.lasting(read.cluster, scenario.policy))


def gpus_by_model(cluster: Cluster, use: str) -> dict[str, list[tuple[int, int]]]:
    """GPUs and position of the offered nodes by GPU model, models sorted; ScenarioError if none has GPUs to ``use``."""
    found: dict[str, list[tuple[int, int]]] = {}
    for position, node in enumerate(cluster.offered.select(["gpu_model", "num_gpu"]).to_pylist()):
        if node["num_gpu"]:
            found.setdefault(node["gpu_model"], []).append((node["num_gpu"], position))
    if not found:
        raise ScenarioError("cluster", "no GPUs", f"GPUs that {use}")
    return dict(sorted(found.items()))


def records_placements(scenario: Scenario) -> bool:
    """Whether placements are needed: for their table, or for the readings that are taken from them."""
    return scenario.record in ("placements", "all") or scenario.telemetry is not None


def records_timeline(scenario: Scenario) -> bool:
    """Whether the run has a timeline."""
    return scenario.record in ("timeline", "all")


def clock() -> Clock:
    """The time now."""
    return time.perf_counter(), time.process_time()


def timing_of(began: Clock, writer: Any, jobs: int, **more: Any) -> dict[str, Any]:
    """Seconds of a run since it began and of the runs that it resumes, jobs a second, and ``more``."""
    wall_s, cpu_s = (now - then for now, then in zip(clock(), began, strict=True))
    spent = {"wall_s": wall_s, "cpu_s": cpu_s}
    wall_s, cpu_s = (spent if writer is None else writer.spent(spent)).values()
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
