"""Checkpoints of runs of adaptive jobs: what the file of every run in rounds holds of them, and the way back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveSetting, Place, StatefulDecider
from fastsim.engine.rounds.checkpoint import DECIDED, RoundCheckpoint
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.tables import ROW
from fastsim.errors import InputError, PolicyError, ResultError
from fastsim_ext.adaptive.snapshot import recorded_again, restore, snapshot

if TYPE_CHECKING:
    from fastsim.engine.adaptive.run import AdaptiveDriver


def decisions(setting: AdaptiveSetting, recorded: bool, gauged: bool) -> dict[str, Any]:
    """What decides a run besides its jobs and its policy; what only other runs in rounds have is None."""
    told = {
        "policies": "of adaptive jobs", "gpu_models": [group.gpu_model for group in setting.groups],
        "gpus": [list(group.gpus__n) for group in setting.groups], "seed": setting.seed,
        "rates": _checksum(setting), "round_s": setting.round_s, "recorded": recorded, "gauged": gauged,
        "records": [repr(kind.descr) for kind in (GANG, MOMENT, ROW)],
    }  # fmt: skip
    return dict.fromkeys(DECIDED) | told


def policy_of(plan: AdaptivePlan) -> list[Any]:
    """What is known of the policy of a run."""
    return [type(plan.decider).__qualname__, plan.tuned, plan.merged]


def belief_rules(plan: AdaptivePlan) -> list[Any]:
    """What decides fitted step times under this plan: one fit for all GPU models or one each; initial measurements."""
    return [plan.merged, *plan.measured]


def stateful_decider(plan: AdaptivePlan) -> StatefulDecider:
    """The decider, if its state can be saved in a checkpoint."""
    if not all(hasattr(plan.decider, name) for name in ("state", "restore")):
        name = type(plan.decider).__qualname__
        raise PolicyError("checkpoint", f"{name}, whose state cannot be saved", "a decider with state() and restore()")
    return cast(StatefulDecider, plan.decider)


def state_of(rounds: AdaptiveDriver, decided: Mapping[str, Any], note: Mapping[str, Any]) -> RoundCheckpoint:
    """All that there is after a round."""
    loop = rounds.loop
    rounds.drain()
    numbers, parts = snapshot(loop, rounds.lessons)
    here = {job.id for job in loop.active}
    parts |= {
        "tasks": np.array([tuple(at) for at in loop.moments], MOMENT).tobytes(),
        "gpus": np.array(loop.gpus, np.int32).tobytes(),
        "rows": b"".join(rounds.rows),
    }
    meta = {
        "loop": numbers, "decided": dict(decided), "policy": policy_of(rounds.plan), "calls": rounds.calls,
        "believing": belief_rules(rounds.plan),
        "memory": stateful_decider(rounds.plan).state(), "note": dict(note),
        "asked": [[job, *rounds.asked[job]] for job in sorted((*numbers["active"], *numbers["gone"]))],
        "places": [[job, at.group, list(at.nodes)] for job, at in rounds.places.items() if job in here],
    }  # fmt: skip
    return RoundCheckpoint(meta, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()})


def take_over(rounds: AdaptiveDriver, state: RoundCheckpoint, decided: Mapping[str, Any]) -> None:
    """Go on where that run was, maybe under another policy: what jobs have learned they still believe."""
    state.check(decided, policy_of(rounds.plan))
    merged, *measured = state.meta.get("believing", [None])
    _check_beliefs(merged, measured, rounds.plan)
    for number, *told in state.meta["asked"]:
        _check(number, rounds.asked[number] if number < len(rounds.asked) else None, told)
    try:
        rounds.places = {job: Place(group, tuple(nodes)) for job, group, nodes in state.meta["places"]}
        sites = {job: rounds.site(job, place) for job, place in rounds.places.items()}
        restore(rounds.loop, rounds.lessons, sites, state.meta["loop"], state.arrays)
        moments = state.arrays["tasks"].view(MOMENT).tolist()
        recorded_again(rounds.loop, moments, state.arrays["gpus"].view(np.int32).tolist())
        rounds.rows.append(state.arrays["rows"].tobytes())
        rounds.calls = state.meta["calls"]
        if merged != rounds.plan.merged:
            _believe_otherwise(rounds)
        if state.meta["policy"] is not None:
            stateful_decider(rounds.plan).restore(state.meta["memory"])
    except (ValueError, KeyError, IndexError, AssertionError) as error:
        raise ResultError(f"checkpoint: found {error}, expected the state of a run of adaptive jobs") from error


def _check_beliefs(merged: bool | None, measured: list[int], plan: AdaptivePlan) -> None:
    """Refuse what would change with which measurements jobs come, those that have come too."""
    if merged is None:
        raise ResultError("checkpoint: found nothing about beliefs, expected the state of a run of adaptive jobs")
    here, then = belief_rules(plan)[1:], list(measured)
    if here != then or (min(then) and merged != plan.merged):
        raise PolicyError("checkpoint", f"jobs that come with measurements on {here}", f"on {then}, as before")


def _believe_otherwise(rounds: AdaptiveDriver) -> None:
    """Let jobs believe of all GPU models what they have seen on any, or of each what they believed of all."""
    for job in rounds.loop.active:
        if rounds.plan.merged:  # of equal configurations the first model's one counts
            first: dict[Any, Any] = {}
            for lesson in job.lesson__g:
                for at in rounds.lessons.measurements(lesson):
                    first.setdefault(at[:3], at)
            told = [rounds.lessons.in_turn([*first.values()]), *(0 for _ in job.lesson__g[1:])]
        else:
            told = [job.lesson__g[0] for _ in job.lesson__g]
        for group, lesson in enumerate(told):
            job.lesson__g[group] = lesson


def _check(number: int, job: AdaptiveJob | None, told: list[Any]) -> None:
    """Refuse another job than the one that had come."""
    expected = "as when the checkpoint was written"
    if job is None:
        raise InputError("workload", f"no job {number}", f"one, {expected}")
    for name, here, then in zip(AdaptiveJob._fields, job, told, strict=True):
        if here != then:
            raise InputError(f"job {number}: {name}", here, f"{then}, {expected}")


def _checksum(setting: AdaptiveSetting) -> str:
    table, sink = setting.applications.table(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()
