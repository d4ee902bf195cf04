"""Checkpoints of runs of adaptive jobs, in the file format of all rounds."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from fastsim.engine.adaptive.driver import STATE, AdaptiveDriver, stateful_decider
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveSetting, Place
from fastsim.engine.adaptive.restored_state import check_state
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.state_file import restoring
from fastsim.engine.rounds.checkpoint import DECIDED, check_decided
from fastsim.engine.rounds.kept_state import kept_state, restored
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.tables import ROW
from fastsim.errors import InputError, PolicyError, ResultError
from fastsim_ext.adaptive.snapshot import recorded_again, restore, snapshot


def decisions(setting: AdaptiveSetting, recorded: bool, measured: bool) -> dict[str, Any]:
    """Everything that decides a run besides its jobs and its policy; None for options of other rounds."""
    own = {
        "policies": "of adaptive jobs", "gpu_models": [group.gpu_model for group in setting.groups],
        "gpus": [list(group.gpus__n) for group in setting.groups], "seed": setting.seed,
        "rates": _checksum(setting), "round_s": setting.round_s, "interference": setting.interference,
        "recorded": recorded, "measured": measured,
        "records": [repr(kind.descr) for kind in (GANG, MOMENT, ROW)],
    }  # fmt: skip
    return dict.fromkeys(DECIDED) | own


def policy_identity(plan: AdaptivePlan) -> list[Any]:
    """The part of a plan that must be the same in a resumed run."""
    return [type(plan.decider).__qualname__, plan.tuned, plan.merged]


def fit_settings(plan: AdaptivePlan) -> list[Any]:
    """Rules of the fitted step times: one fit for all GPU models or one each, and initial measurements."""
    return [plan.merged, *plan.measured]


def state_of(rounds: AdaptiveDriver) -> RunState:
    """The complete state after a round."""
    loop = rounds.loop
    rounds.collect_records()
    numbers, parts = snapshot(loop, rounds.performance)
    here = {job.id for job in loop.active}
    parts |= {
        "tasks": np.array([tuple(at) for at in loop.tasks], MOMENT).tobytes(),
        "gpus": np.array(loop.gpus, np.int32).tobytes(),
        "rows": b"".join(rounds.rows),
    }
    meta = {
        "now_s": numbers["now_s"], "arrived": rounds.arrived, "loop": numbers,
        "decided": rounds.decided, "policy": policy_identity(rounds.plan), "calls": rounds.calls,
        "fit_settings": fit_settings(rounds.plan),
        "memory": kept_state(stateful_decider(rounds.plan)), "note": rounds.note(),
        "jobs": [[job, *rounds.jobs[job]] for job in sorted((*numbers["active"], *numbers["ended_jobs"]))],
        "places": [[job, at.group, list(at.nodes)] for job, at in rounds.places.items() if job in here],
    }  # fmt: skip
    return RunState("adaptive", meta, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()})


def take_over(rounds: AdaptiveDriver, state: RunState) -> None:
    """Restore a checkpoint, maybe under another policy; jobs keep their measurements and fits."""
    with restoring("checkpoint", STATE):
        _take_over(rounds, state)


def _take_over(rounds: AdaptiveDriver, state: RunState) -> None:
    check_decided(state, rounds.decided, policy_identity(rounds.plan))
    merged, *measured = state.meta.get("fit_settings", [None])
    _check_fits(merged, measured, rounds.plan)
    for number, *stored in state.meta["jobs"]:
        _check(number, rounds.jobs[number] if number < len(rounds.jobs) else None, stored)
    check_state(rounds, state.meta, state.arrays)
    rounds.places = {job: Place(group, tuple(nodes)) for job, group, nodes in state.meta["places"]}
    step_times = {job: rounds.step_times(job, place) for job, place in rounds.places.items()}
    restore(rounds.loop, rounds.performance, step_times, state.meta["loop"], state.arrays)
    moments = state.arrays["tasks"].view(MOMENT).tolist()
    recorded_again(rounds.loop, moments, state.arrays["gpus"].view(np.int32).tolist())
    rounds.rows.append(state.arrays["rows"].tobytes())
    rounds.calls = state.meta["calls"]
    if merged != rounds.plan.merged:
        _convert_fits(rounds)
    if state.meta["policy"] is not None:
        restored(stateful_decider(rounds.plan), state.meta["memory"])


def _check_fits(merged: bool | None, measured: list[int], plan: AdaptivePlan) -> None:
    """Refuse a plan with other initial measurements: jobs that have arrived already have theirs."""
    if merged is None:
        raise ResultError("checkpoint: found no rules of fits, expected the state of a run of adaptive jobs")
    here, then = fit_settings(plan)[1:], list(measured)
    if here != then or (min(then) and merged != plan.merged):
        raise PolicyError("checkpoint", f"jobs that arrive with measurements on {here}", f"on {then}, as before")


def _convert_fits(rounds: AdaptiveDriver) -> None:
    """Join the measurements of all GPU models of each job into one fit, or give each model a copy of the one fit."""
    for job in rounds.loop.active:
        if rounds.plan.merged:  # of equal configurations the first model's one counts
            first: dict[Any, Any] = {}
            for history in job.history__g:
                for at in rounds.performance.measurements(history):
                    first.setdefault(at[:3], at)
            history__g = [rounds.performance.fitted_each([*first.values()]), *(0 for _ in job.history__g[1:])]
        else:
            history__g = [job.history__g[0] for _ in job.history__g]
        for group, history in enumerate(history__g):
            job.history__g[group] = history


def _check(number: int, job: AdaptiveJob | None, stored: list[Any]) -> None:
    """Refuse another job than the one that had arrived."""
    expected = "as when the checkpoint was written"
    if job is None:
        raise InputError("workload", f"no job {number}", f"one, {expected}")
    for name, here, then in zip(AdaptiveJob._fields, job, stored, strict=True):
        if here != then:
            raise InputError(f"job {number}: {name}", here, f"{then}, {expected}")


def _checksum(setting: AdaptiveSetting) -> str:
    table, sink = setting.applications.table(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()
