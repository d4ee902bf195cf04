"""Checks of what a decider returns: places of active jobs, on nodes and GPUs that the cluster has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from types import NoneType
from typing import Any

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, JobView, Place
from fastsim.errors import PolicyError, kind_of, short
from fastsim.foundation.limits.quantities import is_whole

Places = dict[int, Place]
JOB_ID = attrgetter("id")


def checked_places(
    answer: Any, view: AdaptiveView, setting: AdaptiveSetting, before: Mapping[int, Place], policy: str
) -> Places:
    """The places that a decider returned, with plain numbers; PolicyError for those that no active job can have.

    Jobs with None wait. Places ``before`` that a job keeps have been checked; GPUs are counted by
    :func:`excess_of_gpus`.
    """
    if type(answer) is dict and _are_plain(answer, view, setting, before):
        return dict(answer)
    where = f"policy {policy} at {view.now_s:g} s: decide()"
    chosen = _by_job(answer, view, where, "a dict of a Place for each job that runs, {job.id: Place(group, nodes)}")
    jobs = {job.id: job for job in view.jobs}
    for job, place in chosen.items():
        if place is not before.get(job) and not _is_plain(place, jobs[job], setting):
            chosen[job] = _place(place, jobs[job], setting, f"{where}: job {job}")
    return chosen


def checked_groups(answer: Any, view: AdaptiveView, setting: AdaptiveSetting, policy: str) -> dict[int, int]:
    """The groups on which jobs of fixed size run, as ``chosen`` returned them; PolicyError if GPUs lack."""
    where = f"{policy}.chosen() at {view.now_s:g} s"
    chosen = _by_job(answer, view, where, "a dict of the group of each job that runs, {job.id: group}")
    jobs, used = {job.id: job for job in view.jobs}, Counter[int]()
    for job, group in chosen.items():
        chosen[job] = number = _group(group, setting, f"{where}: job {job}")
        _check_model(jobs[job], number, setting, f"{where}: job {job}")
        used[number] += jobs[job].job.num_gpu
    for number, gpus in used.items():
        if gpus > setting.groups[number].gpus:
            found = f"jobs on {gpus} GPUs of group {number} ({setting.groups[number].gpu_model})"
            raise PolicyError(where, found, f"at most its {setting.groups[number].gpus}")
    return chosen


def excess_of_gpus(places: Places, view: AdaptiveView, setting: AdaptiveSetting, policy: str) -> PolicyError | None:
    """The error that names the first node of which these places take more GPUs than it has; None if none does."""
    used = Counter((place.group, node) for place in places.values() for node in place.nodes)
    over = [(at, count) for at, count in sorted(used.items()) if count > setting.groups[at[0]].gpus__n[at[1]]]
    if not over:
        return None
    (group, node), count = over[0]
    ids = [job for job, place in places.items() if place.group == group and node in place.nodes]
    found = f"{count} GPUs of node {node} of group {group} ({setting.groups[group].gpu_model}) for jobs {_listed(ids)}"
    expected = f"at most its {setting.groups[group].gpus__n[node]}, each for one job"
    return PolicyError(f"policy {policy} at {view.now_s:g} s: decide()", found, expected)


def _are_plain(
    answer: dict[Any, Any], view: AdaptiveView, setting: AdaptiveSetting, before: Mapping[int, Place]
) -> bool:
    """Whether all jobs of an answer are active and keep the places ``before``, or have others of plain numbers."""
    if not {int}.issuperset(map(type, answer)):
        return False
    active = dict(zip(map(JOB_ID, view.jobs), view.jobs, strict=True))
    if not active.keys() >= answer.keys():
        return False
    kept = before.get
    return all(
        place is not None and (place is kept(job) or _is_plain(place, active[job], setting))
        for job, place in answer.items()
    )


def _by_job(answer: Any, view: AdaptiveView, where: str, expected: str) -> dict[int, Any]:
    """A mapping by active job, without those that wait."""
    if not isinstance(answer, Mapping):
        raise PolicyError(where, kind_of(answer), expected)
    active = set(map(attrgetter("id"), view.jobs))
    chosen = dict(answer)
    if NoneType in set(map(type, chosen.values())):
        chosen = {job: value for job, value in chosen.items() if value is not None}
    if not active.issuperset(chosen) or not {int}.issuperset(map(type, chosen)):
        chosen = {_job(job, active, where): value for job, value in chosen.items()}
    return chosen


def _job(job: Any, active: set[int], where: str) -> int:
    if not is_whole(job) or int(job) not in active:
        raise PolicyError(where, f"{short(job)} as a job", f"ids of active jobs: {_listed(sorted(active))}")
    return int(job)


def _is_plain(place: Any, job: JobView, setting: AdaptiveSetting) -> bool:
    """Whether this is a place of plain numbers that the job can have; :func:`_place` says what is wrong otherwise."""
    if type(place) is not Place or type(place.group) is not int or type(place.nodes) is not tuple or not place.nodes:
        return False
    if not 0 <= place.group < len(setting.groups) or not {int}.issuperset(map(type, place.nodes)):
        return False
    group = setting.groups[place.group]
    return min(place.nodes) >= 0 and max(place.nodes) < len(group.gpus__n) and group.gpu_model in job.application.steps


def _place(place: Any, job: JobView, setting: AdaptiveSetting, where: str) -> Place:
    """The place with plain numbers."""
    if not isinstance(place, Place):
        raise PolicyError(where, kind_of(place), "a Place(group, nodes)")
    group = _group(place.group, setting, where)
    _check_model(job, group, setting, where)
    count = len(setting.groups[group].gpus__n)
    expected = f"the node of each of its GPUs, 0 to {count - 1} within group {group}; a job that waits has no place"
    if isinstance(place.nodes, str | bytes | Mapping) or not isinstance(place.nodes, Iterable):
        raise PolicyError(f"{where}: nodes", kind_of(place.nodes), expected)
    nodes = tuple(place.nodes)
    if not nodes or not all(is_whole(node) and 0 <= node < count for node in nodes):
        found = next((short(node) for node in nodes if not (is_whole(node) and 0 <= node < count)), "none")
        raise PolicyError(f"{where}: nodes", found, expected)
    plain = type(place.nodes) is tuple and type(place.group) is int and all(type(node) is int for node in nodes)
    return place if plain else Place(group, tuple(map(int, nodes)))


def _group(group: Any, setting: AdaptiveSetting, where: str) -> int:
    if not is_whole(group) or not 0 <= group < len(setting.groups):
        models = ", ".join(f"{number} = {group.gpu_model}" for number, group in enumerate(setting.groups))
        raise PolicyError(f"{where}: group", short(group), f"the number of a group: {models}")
    return int(group)


def _check_model(job: JobView, group: int, setting: AdaptiveSetting, where: str) -> None:
    """PolicyError if the application of a job was not measured on the GPU model of a group."""
    model, app = setting.groups[group].gpu_model, job.application
    if model not in app.steps:
        expected = f"a GPU model that {app.name} can use: {', '.join(app.steps)}"
        raise PolicyError(where, f"group {group} ({model})", expected)


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:10])) + (", ..." if len(ids) > 10 else "")
