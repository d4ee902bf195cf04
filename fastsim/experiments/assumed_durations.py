"""Durations of pods that state none, from those of other pods.

A pod has the mean duration of its owner's pods that are over among the same objects. Without any it has that of a
history: of its owner's pods there, else of its tenant's, else of all. The owner is the controller,
``Kind/namespace/name`` or a bare name. Endings that a Deployment gives its ReplicaSets, and a CronJob its Jobs, do not
count.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import fsum
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.limits.quantities import MOST_SECONDS, MOST_SECONDS_TEXT
from fastsim.scenario import run_inputs
from fastsim.workload import schema as s
from fastsim.workload.importers.kubernetes import NodesKept, trace_of
from fastsim.workload.pod_rows import Held
from fastsim.workload.workload import Workload

OWN = "own"
"""Text of a history that is the pods themselves: those that are over."""
ENDINGS = {
    "ReplicaSet": ("Deployment", re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{1,10}")),
    "Job": ("CronJob", re.compile(r"-\d{4,}")),
}
"""Kinds of owners that a controller of another kind makes, that kind, and the ending that it gives their names."""

Source = Callable[[str | None, str | None], float | None]


class UnknownDurations(UserWarning):
    """Pods of a plan for waits never end, because their durations are unknown."""


class AssumedDurations(UserWarning):
    """Pods of a plan have assumed durations; the text says how many, and of which pods these are the mean."""


class Ended(NamedTuple):
    """A pod that is over: owner, tenant and duration (s)."""

    owner: str | None
    tenant: str | None
    duration_s: float


class Means(NamedTuple):
    """Mean durations (s) of pods that are over: by owner, by tenant, of all."""

    owners: dict[str, float]
    tenants: dict[str, float]
    overall: float | None

    @classmethod
    def of(cls, pods: Iterable[Ended]) -> Means:
        """The means of these pods."""
        listed = list(pods)
        owners = _means((pod.owner, pod.duration_s) for pod in listed)
        tenants = _means((pod.tenant, pod.duration_s) for pod in listed)
        return cls(owners, tenants, _means(("", pod.duration_s) for pod in listed).get(""))

    def of_owner(self, owner: str | None) -> float | None:
        """The mean of an owner; one that the pods know by its bare name alone is found by that."""
        name = owner or ""
        return self.owners.get(name, self.owners.get(name.rpartition("/")[2]))


def warn_of_unknown_durations(workload: Workload) -> None:
    """Warn if some pods of Kubernetes never end."""
    if workload.metadata.get("fastsim.source") != "kubernetes":
        return
    table = workload.table()
    unknown = table[s.DURATION_S].null_count if s.DURATION_S in table.column_names else len(table)
    if unknown:
        text = f"durations of {unknown:,} of {len(table):,} pods are unknown, so nothing that they hold becomes free"
        do = "assume some with durations or pod_duration_s"
        warnings.warn(f"plan: {text}; {do}", UnknownDurations, stacklevel=5)


def ending(workload: Workload, durations: Any, pod_duration_s: float | None) -> Workload:
    """The pods, of which those of unknown duration end after an assumed one.

    ``durations``: a workload, or its text, or ``own``. ``pod_duration_s`` takes the place of the mean of all pods.
    """
    if pod_duration_s is not None and not 0 < pod_duration_s <= MOST_SECONDS:
        raise ScenarioError("plan: pod_duration_s", pod_duration_s, f"more than 0 s, {MOST_SECONDS_TEXT} at most")
    table, field = workload.table(), s.POD_SCHEMA.field(s.DURATION_S)
    known = table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
    if durations is None:
        filled = pc.fill_null(known, pod_duration_s)
    else:
        sources = _sources(workload, durations, pod_duration_s)
        filled = pa.array(_assumed(table, known.to_pylist(), sources), field.type)
    names = [name for name in s.POD_SCHEMA.names if name in {*table.column_names, field.name}]
    columns = {name: table[name] if name != field.name else filled for name in names}
    ended = Workload(Held(pa.table(columns)), names, name=workload.name, rows=len(table), metadata=workload.metadata)
    ended.population = workload.population
    return ended


def controller(owner: str | None) -> str | None:
    """The controller that an owner stands for.

    >>> controller("ReplicaSet/team/serve-6b5d9f4c8"), controller("Job/team/nightly-29384750"), controller("train")
    ('Deployment/team/serve', 'CronJob/team/nightly', 'train')
    """
    kind, _, name = (owner or "").partition("/")
    above, form = ENDINGS.get(kind, ("", None))
    head, dash, tail = name.rpartition("-")
    return f"{above}/{head}" if form is not None and form.fullmatch(dash + tail) else owner


def _assumed(table: pa.Table, known: list[float | None], sources: Mapping[str, Source]) -> list[float | None]:
    """The durations of all pods, each from the first source that has one; one warning has the numbers."""
    counts: Counter[str] = Counter()
    durations = []
    for owner, tenant, duration_s in zip(_owners(table), _tenants(table), known, strict=True):
        for name, source in sources.items() if duration_s is None else ():
            if (duration_s := source(owner, tenant)) is not None:
                counts[name] += 1
                break
        durations.append(duration_s)
    if counts:
        listed = ", ".join(f"{counts[name]:,} {name}" for name in sources if counts[name])
        text = f"plan: durations of {counts.total():,} of {len(table):,} pods are assumed: {listed}"
        warnings.warn(text, AssumedDurations, stacklevel=6)
    return durations


def _sources(workload: Workload, durations: Any, pod_duration_s: float | None) -> dict[str, Source]:
    """Functions of owner and tenant to a duration (s), None where there is none, by their name, the first one first."""
    own = Means.of(_ended((workload if workload.snapshot is None else trace_of(workload.snapshot)).table()))
    history, name = own, "these pods"
    if not _is_own(durations):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NodesKept)  # nothing is placed
            pods = run_inputs.workload_from(durations).workload
        history, name = Means.of(_ended(pods.table())), durations if isinstance(durations, str) else pods.name
    mean_s = history.overall
    if mean_s is None:
        expected = "pods with durations, such as kubernetes:PATH?as=trace"
        raise InputError("plan: durations", f"no pod that is over in {name}", expected)
    last, last_s = ("by pod_duration_s", pod_duration_s) if pod_duration_s is not None else ("by their mean", mean_s)
    return {
        "by owner": lambda owner, tenant: own.of_owner(owner),
        f"by owner in {name}": lambda owner, tenant: history.of_owner(owner),
        f"by tenant in {name}": lambda owner, tenant: history.tenants.get(tenant or ""),
        last: lambda owner, tenant: last_s,
    }


def _is_own(durations: Any) -> bool:
    return isinstance(durations, str) and durations == OWN


def _ended(table: pa.Table) -> Iterator[Ended]:
    """The rows with a duration that is no lower bound."""
    bounds = table[s.CENSORED].to_pylist() if s.CENSORED in table.column_names else [None] * len(table)
    known = table[s.DURATION_S].to_pylist() if s.DURATION_S in table.column_names else [None] * len(table)
    for owner, tenant, duration_s, bound in zip(_owners(table), _tenants(table), known, bounds, strict=True):
        if duration_s is not None and not bound:
            yield Ended(owner, tenant, duration_s)


def _owners(table: pa.Table) -> list[str | None]:
    return [controller(name) for name in _texts(table, s.NATIVE_JOB_ID)]


def _tenants(table: pa.Table) -> list[str | None]:
    return _texts(table, s.TENANT)


def _texts(table: pa.Table, name: str) -> list[str | None]:
    texts: list[str | None] = table[name].to_pylist() if name in table.column_names else [None] * len(table)
    return texts


def _means(pairs: Iterable[tuple[str | None, float]]) -> dict[str, float]:
    """The mean of the numbers of each name."""
    listed: defaultdict[str, list[float]] = defaultdict(list)
    for name, number in pairs:
        if name is not None:
            listed[name].append(number)
    return {name: fsum(numbers) / len(numbers) for name, numbers in listed.items()}
