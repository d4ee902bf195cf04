"""Warnings about a run: pods and columns of its workload that its engine did not honour."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from fastsim.foundation.columns.physical_types import canonical
from fastsim.scenario.run_rules import OTHER_TENANTS

if TYPE_CHECKING:
    from fastsim.scenario.run_rules import Rules
    from fastsim.workload import Workload
    from fastsim.workload.oversized_pods import Oversized

Message = tuple[type[Warning], str]
"""A warning that is issued later."""

MOST_NAMES = 5
"""Names that a warning lists."""


class RunWarning(UserWarning):
    """A warning that may make the result of a run misleading."""


class PodTooLarge(RunWarning):
    """Some pods are larger than any node of the cluster, so they stay unplaced."""


class PodNeverFits(PodTooLarge):
    """No empty node of the cluster hosts some pods for another reason than their size, so they stay unplaced."""


class ColumnIgnored(RunWarning):
    """The workload has values in a column that the engine of the run does not look at."""


class TenantAbsent(RunWarning):
    """A quota or a weight is of a tenant that has no pods."""


def large_pods(oversized: Oversized) -> list[Message]:
    """The warnings about pods that fit on no node, one for each obstacle."""
    from fastsim.workload.oversized_pods import TOO_LARGE, obstacle_text

    messages: list[Message] = []
    for reason, kept in oversized.kept.items():
        if reason == TOO_LARGE:
            subject = "1 pod is" if kept.count == 1 else f"{kept.count:,} pods are"
            text = f"{subject} larger than any node and stayed unplaced, for example {kept.example}"
            messages.append((PodTooLarge, text))
        else:
            subject = "1 pod" if kept.count == 1 else f"{kept.count:,} pods"
            text = obstacle_text(reason, kept, oversized.models)
            messages.append((PodNeverFits, f"{subject} stayed unplaced ({reason}): {text}"))
    return messages


def absent_tenants(workload: Workload, rules: Rules) -> list[Message]:
    """The warning about tenants with a quota or a weight but no pods; none if tenants of a stream would be read.

    It is no error: one table of quotas serves many workloads, and not every tenant has pods in each.
    """
    from fastsim.workload.workload import Held

    named = (rules.quotas.keys() | rules.weights.keys()) - {OTHER_TENANTS}
    if not named or ("tenant" in workload.columns and not isinstance(workload.source, Held)):
        return []
    tenants: set[str | None] = {None}
    if "tenant" in workload.columns and isinstance(workload.source, Held):
        tenants = set(canonical(workload.source.table["tenant"], pa.string()).unique().to_pylist())
    absent = sorted(named - {tenant or "" for tenant in tenants})
    listed = ", ".join(repr(name) for name in absent[:MOST_NAMES]) + (", …" if len(absent) > MOST_NAMES else "")
    text = f"{workload.name}: quotas or weights of tenants that have no pods: {listed}"
    return [(TenantAbsent, text)] if absent else []


def warn(messages: Iterable[Message], depth: int) -> None:
    """Issue the warnings at the caller's line; ``depth`` public functions lie between."""
    for category, text in sorted(messages, key=lambda pair: pair[1]):
        warnings.warn(text, category, stacklevel=depth + 2)
