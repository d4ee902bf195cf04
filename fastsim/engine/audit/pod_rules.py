"""Rules between pods, checked against stays: pods beside or apart from others, and pods that start after a gang.

What happens at one instant has no order in the tables, so a rule counts as broken only if it is in every order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from fastsim.engine.audit.inputs import Evidence
from fastsim.hardware.node_constraints import BESIDE, node_labels


class SetStay(NamedTuple):
    """A stay of a pod of a set: the pod, position of its node, seconds of start and end."""

    pod_id: int
    node: int
    start_s: float
    end_s: float


def broken_rules(run: Evidence) -> Iterator[tuple[int, float, str]]:
    """Starts that no order of events allows: pod, second, the rule."""
    if run.engine != "pods":
        return
    if {"near", "spread_sets"} <= set(run.pods.columns):
        yield from _misplaced(run)
    if {"after_gang", "gang_size"} <= set(run.pods.columns):
        yield from _too_early(run)


def _misplaced(run: Evidence) -> Iterator[tuple[int, float, str]]:
    """Pods whose domains held others than their rules about pods near allow."""
    rows = {row["pod_id"]: row for row in run.pods.select("pod_id", "near", "spread_sets").to_dicts()}
    bound = set(_bound(run))
    labels = [node_labels(node) for node in run.nodes]
    stays = run.stays.select("pod_id", "attempt", "node_id", "start_s", "end_s").rows()
    members: dict[str, list[SetStay]] = defaultdict(list)
    for pod_id, _, node, start_s, end_s in stays:
        for name in rows[pod_id]["spread_sets"] or ():
            members[name].append(SetStay(pod_id, node, start_s, end_s))
    for pod_id, attempt, node, start_s, _ in stays:
        rules = () if attempt == 0 and pod_id in bound else rows[pod_id]["near"] or ()
        besides = [rule for rule in rules if rule["rule"] == BESIDE]
        own = rows[pod_id]["spread_sets"] or ()
        first = all(rule["pods"] in own and not _held(labels, rule, members, pod_id, start_s) for rule in besides)
        for rule in rules:
            place = labels[node].get(rule["topology"])
            there = _held(
                labels=labels, rule=rule, members=members, pod_id=pod_id, t_s=start_s, perhaps=rule["rule"] == BESIDE
            )
            allowed = place in there or first if rule["rule"] == BESIDE else place is None or place not in there
            if not allowed or (rule["rule"] == BESIDE and place is None):
                yield pod_id, start_s, f"{rule['rule']} by {rule['topology']}"


def _held(
    labels: list[dict[str, str]], rule: dict[str, Any], members: dict[str, list[SetStay]], pod_id: int, t_s: float,
    perhaps: bool = False,
) -> set[str]:  # fmt: skip
    """Domains that hold another pod of the set of a rule at an instant, in any order; ``perhaps``: in some order."""
    held = {
        labels[stay.node].get(rule["topology"]) for stay in members[rule["pods"]]
        if stay.pod_id != pod_id
        and (stay.start_s <= t_s <= stay.end_s if perhaps else stay.start_s < t_s < stay.end_s)
    }  # fmt: skip
    return {place for place in held if place is not None}


def _bound(run: Evidence) -> list[int]:
    """Pods that are there already when they arrive, whatever the rules are."""
    if "bound_node" not in run.pods.columns:
        return []
    bound: list[int] = run.pods.filter(pl.col("bound_node").is_not_null())["pod_id"].to_list()
    return bound


def _too_early(run: Evidence) -> Iterator[tuple[int, float, str]]:
    """Pods that started although gangs of their job had come before them, none of which had started."""
    bound, begun = (
        set(_bound(run)),
        dict(run.stays.group_by("pod_id", maintain_order=True).agg(pl.col("start_s").min()).iter_rows()),
    )
    gangs: dict[int, list[int]] = defaultdict(list)
    for pod_id, job, size, after in run.pods.select("pod_id", "job_id", "gang_size", "after_gang").rows():
        if (size or 1) > 1:
            gangs[job].append(pod_id)
            continue
        members = [begun.get(member, float("inf")) for member in gangs[job]]
        if after and members and pod_id in begun and pod_id not in bound and min(members) > begun[pod_id]:
            yield pod_id, begun[pod_id], "after a gang of its job"
