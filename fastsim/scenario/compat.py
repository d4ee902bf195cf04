"""Compat switches: behaviours of original systems that fastsim reproduces only on request.

A switch is a named boolean that is off by default; ``compat="gavel"`` turns on a system's set. The
FGD and PWR simulators need none: everything in them that changes a placement is part of the
published definition of their policies, and fastsim always does the same. Parameters of policies that a
switch turns on bear its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastsim.errors import ScenarioError, suggestion


@dataclass(frozen=True)
class Switch:
    """One behaviour: its name, the system it comes from, what it does, and whether it is on by default."""

    name: str
    system: str
    what: str
    default: bool = False


SYSTEMS = ("fgd", "pwr", "gavel", "gavel-2020-05", "synergy", "monitored")
"""Systems whose name ``compat=`` accepts, with or without switches of their own."""

_GAVEL = {
    "new_job_reserves_gpus": "a job without an allocation yet blocks GPUs for a round and leaves them idle",
    "gang_last_chunk_failure": "a gang with less than a step for each GPU left fails, five times in a row for good",
    "idle_gap_accounting": "the first round after an idle time is charged that time, in shares, use and cost",
    "whole_steps": "only whole steps fit into a round, so rounds are a little shorter",
    "reset_at_zero": "an allocation of second 0 may be replaced in the very next round",
    "stale_arrival": "with nothing running, time goes to the next arrival although jobs wait, then back to the last",
    "late_shares": "allocations are 1,920 s apart for fifo and for deadlines, too, although jobs wait for them",
    "late_deadlines": "a deadline is as much later as the round that takes the job in begins after its arrival",
    "lease_cost": "a job pays from the end of the last round at the price of its own, each of a pair for all its GPUs",
    "use_from_zero": "use of GPUs counts from second 0, not from the first arrival",
    "fifo_compat": "fifo without rates: not the drawn GPU model but the last one with room for any job, even if full; "
    "fifo that packs: the first job that has to wait joins none while GPUs are free, too few for it",
    "allox_compat": "allox: every place of every GPU is a column, and ties fall as in the original",
    "program_compat": "finish-time fairness, water filling: of many optima the one where the published program ends",
    "azure_last_zone": "Azure's price is that of the last zone by name, not of the cheapest",
    "slo_compare_absolute": "a deadline, an instant, is compared with a completion time, a duration",
    "estimator_column_bug": "measured rates of sharing are read from wrong columns unless all models are references",
}

_GAVEL_2020_05 = {name: what for name, what in _GAVEL.items() if name != "gang_last_chunk_failure"} | {
    "unowed_pairs": "two jobs that could share GPUs are not owed half a round when they first could",
    "munkres_ties": "allox: jobs and places are matched as SciPy did before 1.4, which decides among equal costs",
}
"""Gavel in May 2020, of which are the printed figures: a gang does its last steps, however few."""

_SYNERGY = {
    "whole_steps": _GAVEL["whole_steps"],
    "lease_end_finish": "a job that is done within a round is complete at the round's end",
    "idle_gap_ends": "a run without a window ends at the first round without jobs, although more jobs arrive later",
    "stale_speedup": "jobs are sorted by the speed they had in the round before",
    "demotion_raises": "tune: a job lowered to its fair share gets all of it, also of what it needs less of",
    "reclaim_sweeps": "tune: reclaiming takes the speedup of jobs, too, that have nothing to give back",
    "ftf_smallest_first": "ftf: the job that is least behind comes first",
    "las_serves_few": "las: only jobs whose GPUs alone would suffice are served; with tune the largest gangs first",
    "storage_demand_fixed": "a job asks for 62.5 MB/s of storage a GPU, whatever its profile says",
    "clip_by_cpu": "a demand cut to a server slows a job by its CPUs alone, and not at all by its memory",
}

_MONITORED = {
    "heap_ties": "pods that declare the same leave the queue as they lie in a heap, not by age",
    "one_release": "at most one ended pod of a GPU is released in each pass",
    "api_pace": "a pass looks up every running pod with a request of its own: ten at once, five a second",
    "idle_pass": "a pod that comes while none waits is taken along for a pass, and asked about in the next",
    "zero_draw": "binding fails where the original's random priority of the node was 0",
}

SWITCHES: tuple[Switch, ...] = tuple(
    Switch(name, system, what)
    for system, switches in (
        ("gavel", _GAVEL),
        ("gavel-2020-05", _GAVEL_2020_05),
        ("synergy", _SYNERGY),
        ("monitored", _MONITORED),
    )
    for name, what in switches.items()
)
"""Every switch the engines honour."""


def switches_on(compat: str) -> frozenset[str]:
    """Names of the switches that ``compat`` turns on: systems and switch names, separated by commas."""
    words = [word.strip() for word in compat.split(",") if word.strip()]
    known = {*SYSTEMS, *(switch.name for switch in SWITCHES)}
    for word in words:
        if word not in known:
            expected = f"one of {', '.join(sorted(SYSTEMS))}, or a switch: SWITCHES of fastsim.scenario.compat"
            raise ScenarioError("compat", repr(word), expected, suggestion(word, known))
    chosen = {switch.name for switch in SWITCHES if switch.default or {switch.name, switch.system} & set(words)}
    return frozenset(chosen)
