"""The explanation of one round of a run of jobs: the engine's rows of the jobs asked for, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastsim.decisions.explained_source import refuse_other_inputs
from fastsim.decisions.replay import selected_pods
from fastsim.decisions.rounds.adaptive_round import adaptive_rows
from fastsim.decisions.rounds.columns import COLUMNS, RUNS, SCHEMAS
from fastsim.decisions.rounds.ordered_round import ordered_rows
from fastsim.decisions.rounds.replayed_round import PlayedRound
from fastsim.decisions.rounds.share_round import share_rows
from fastsim.engine.result import Result
from fastsim.engine.rounds.arrival_ids import ArrivalIds
from fastsim.engine.shares.run import ShareDriver
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.foundation.limits.quantities import WITH_UNITS, is_span, seconds_of
from fastsim.policies.registry import engine_of, policy_of
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines import adaptive, rounds
from fastsim.simulation.simulate import Progress


@dataclass(frozen=True)
class RoundExplanation:
    """A round of an engine: its number, its beginning in seconds, and the rows of jobs."""

    engine: str
    number: int
    began_s: float
    table: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """The rows; columns as in ``SCHEMAS`` of :mod:`fastsim.decisions.rounds.columns`."""
        return self.table


def moment(t: object) -> float:
    """Seconds of a time; ScenarioError for what is none."""
    seconds = seconds_of(t) if isinstance(t, str) else t
    if not is_span(seconds):
        raise ScenarioError("explain: t", repr(t), f"seconds of 0 or more, or {WITH_UNITS}")
    return float(seconds)  # type: ignore[arg-type]


def round_explanation(
    scenario: Scenario, saved: Result | None, names: Sequence[int | str], t: object, progress: Progress | None = None
) -> RoundExplanation:
    """The round at ``t``, of these jobs or of all in the system; ScenarioError for a run without rounds."""
    t_s, policy = moment(t), policy_of(scenario.policy)
    engine = engine_of(policy)
    if engine not in COLUMNS or scenario.ideal:
        kind = "jobs without rounds" if scenario.ideal else f"a run of engine {engine}"
        raise ScenarioError("explain: t", kind, f"a run in rounds: of engine {', '.join(COLUMNS)}")
    prepared = adaptive.prepared_adaptive if engine == "adaptive" else rounds.prepared_rounds
    inputs: Any = prepared(scenario, policy)
    if saved is not None:
        refuse_other_inputs(scenario, inputs.cluster, inputs.workload, saved.provenance)
    ids = JobIds(inputs.workload)
    chosen = ids.selected(names)
    played = _played(scenario=scenario, inputs=inputs, engine=engine, t_s=t_s, ids=ids, progress=progress)
    if missing := [job for job in chosen if job not in played.rows]:
        raise ids.absent(missing[0], played.began_s)
    table = _table(engine, played, chosen or sorted(played.rows), ids)
    if saved is not None:
        refuse_other_stays(table, saved)
    return RoundExplanation(engine, played.number, played.began_s, table)


def _played(
    scenario: Scenario, inputs: Any, engine: str, t_s: float, ids: JobIds, progress: Progress | None
) -> PlayedRound:
    """The rows of all jobs of the round."""
    if engine == "adaptive":
        return adaptive_rows(adaptive.driver_of(scenario, inputs, progress), t_s, ids.id_of)
    driver = rounds.driver_of(scenario, inputs, progress)
    if isinstance(driver, ShareDriver):
        return share_rows(driver, t_s, ids.id_of)
    return ordered_rows(driver, t_s, ids.id_of)


class JobIds:
    """Ids and names of the jobs of a workload, by arrival number."""

    def __init__(self, workload: Any) -> None:
        self.workload, self.arrivals = workload, ArrivalIds(workload)

    def id_of(self, job: int) -> int:
        """The id of a job."""
        return job if self.arrivals.endless else int(self.arrivals.rows["pod_id"][job])

    def selected(self, names: Sequence[int | str]) -> list[int]:
        """The jobs of these ids or names, in their order."""
        if not self.arrivals.endless:
            return list(dict.fromkeys(job for name in names for job in selected_pods(self.workload, [name])))
        wrong = next((name for name in names if not str(name).isdecimal()), None)
        if wrong is not None:
            raise InputError(
                f"job {wrong!r}", "no such job in the workload", "a number: its jobs are drawn without end"
            )
        return [int(name) for name in names]

    def absent(self, job: int, began_s: float) -> InputError:
        """The error about a job that is not in the system in a round."""
        found = f"it is not in the system in the round at {began_s:g} s"
        return InputError(f"job {self.id_of(job)}", found, "a job that has arrived by then and not ended")

    def native(self, job: int) -> str | None:
        """The name of a job in its source; None without one."""
        rows = None if self.arrivals.endless else self.arrivals.rows
        return rows["native_id"][job] if rows is not None and "native_id" in rows.columns else None


def _table(engine: str, played: PlayedRound, jobs: Sequence[int], ids: JobIds) -> pl.DataFrame:
    """The rows of these jobs."""
    head = {"round": played.number, "t_s": played.began_s}
    rows = [
        {"pod_id": ids.id_of(job), "native_id": ids.native(job), **head, **row}
        for job in jobs
        for row in played.rows[job]
    ]
    return pl.DataFrame(rows, SCHEMAS[engine], orient="row")


def refuse_other_stays(table: pl.DataFrame, saved: Result) -> None:
    """ResultError if a job ran or waited otherwise by the saved placements: the policy or fastsim may have changed."""
    stays = (
        saved.recorded_rows("placements")
        .select("pod_id", "node_id", "start_s", "end_s")
        .drop_nulls("node_id")
        .collect()
    )
    if stays.is_empty() or table.is_empty():
        return
    t_s = table["t_s"][0]
    there = stays.filter(pl.col("start_s") <= t_s, pl.col("end_s").is_null() | (pl.col("end_s") > t_s))["pod_id"]
    other = table.filter((pl.col("state") == RUNS) != pl.col("pod_id").is_in(there.implode()))
    if not other.is_empty():
        job, state = other.select("pod_id", "state").row(0)
        then = "it waits" if state == RUNS else "it runs"
        do = "the policy or fastsim changed since; run it again"
        raise ResultError(
            f"job {job}: found that it {state} at {t_s:g} s when repeated, expected that {then} as saved; {do}"
        )
