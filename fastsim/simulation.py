"""Runs scenarios: texts become objects, the engine places the pods, the result learns where it came from."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastsim import sources, spec
from fastsim.compat import switches_on
from fastsim.errors import PolicyError, ScenarioError
from fastsim.plan import GPU_PICKS, QUEUES, OnlinePlan, OnlinePolicy
from fastsim.policies import registry
from fastsim.spec import Scenario

if TYPE_CHECKING:
    from fastsim.cluster import Cluster
    from fastsim.result import Result
    from fastsim.stages import Deschedule
    from fastsim.typical import TypicalPods
    from fastsim.workload import Workload

Progress = Callable[[int], None]
"""Told the number of pods that have arrived (one run) or of runs that are finished (many)."""

FASTSIM = """@software{fastsim,
  title = {fastsim: a {GPU}-cluster scheduling simulator},
  author = {{The fastsim authors}}
}"""


NOT_HONOURED = ("gpu_memory_mib", "gang_size", "max_per_node", "extra_resources", "constraints", "pinned_node")
"""Pod columns that ask for more than the online engine looks at so far."""


class RunWarning(UserWarning):
    """Something about a run that its user should know before believing the result."""


class PodTooLarge(RunWarning):
    """Some pods are larger than any node of the cluster, so they will stay unplaced."""


class ColumnIgnored(RunWarning):
    """The workload has a column that asks for something the engine does not look at."""


def simulate(
    cluster: Cluster | str,
    workload: Workload | str,
    policy: OnlinePolicy | str = "fgd",
    *,
    seed: int = 0,
    typical: TypicalPods | Workload | str | None = None,
    queue: str = "drop",
    gpu_pick: str | None = None,
    sample_s: float | None = None,
    until_s: float | None = None,
    record: str = "all",
    deschedule: Sequence[Deschedule | str] = (),
    inflation: float | None = None,
    retarget: TypicalPods | Workload | str | None = None,
    compat: str = "",
    progress: Progress | None = None,
) -> Result:
    """Offer every pod of the workload to the policy on this cluster.

    Texts are explained in ``fastsim.sources`` and :func:`fastsim.policies.parse`. ``typical`` are the pods
    fragmentation is measured with (the workload itself by default). ``queue`` says what happens to a pod that
    fits nowhere; ``sample_s`` (seconds) thins the timeline and ``until_s`` (seconds) ends the run early.
    ``deschedule``, ``inflation`` and ``retarget`` follow the main run. ``progress`` is told the pods so far.
    """
    given = dict(locals())
    given["deschedule"] = tuple(deschedule)
    del given["progress"]
    return run(Scenario(**given), progress)


def simulate_many(
    scenarios: Iterable[Scenario | Mapping[str, Any]], workers: int = 1, progress: Progress | None = None
) -> list[Result]:
    """One result for each scenario, in their order; the same bytes on any number of worker processes.

    All scenarios are checked before the first one runs. With ``workers`` above 1, call this under
    ``if __name__ == "__main__":`` as every spawned process needs.
    """
    from fastsim.executors import executor

    listed = [item if isinstance(item, Scenario) else Scenario.from_dict(item) for item in scenarios]
    for scenario in listed:
        scenario.check()
    results: list[Result] = []
    told: set[Message] = set()
    with executor(workers, len(listed)) as spread:
        for result, messages in spread.map(_run_quietly, listed):
            results.append(result)
            _repeat(messages - told)
            told |= messages
            if progress is not None:
                progress(len(results))
    return results


def run(scenario: Scenario, progress: Progress | None = None) -> Result:
    """The result of one scenario."""
    scenario.check()
    cluster = sources.cluster_from(scenario.cluster)
    workload, untuned = sources.workload_from(scenario.workload, cluster)
    policy = registry.parse(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy
    plan = _plan(policy, cluster, workload, scenario)
    typical = sources.typical_from(scenario.typical, untuned, cluster)
    _warn_about_large_pods(cluster, workload)
    _warn_about_columns(workload)
    from fastsim.engine import run_online

    result = run_online(cluster, workload, plan, typical, _options(scenario, cluster, untuned, progress))
    return result.labelled((*_citations(policy), FASTSIM), **_provenance(scenario))


def _plan(policy: OnlinePolicy, cluster: Cluster, workload: Workload, scenario: Scenario) -> OnlinePlan:
    plan = policy.plan(cluster, workload)
    if not isinstance(plan, OnlinePlan):
        raise PolicyError(f"policy {policy}", f"a plan of type {type(plan).__name__}", "an OnlinePlan")
    if scenario.queue != "drop":
        plan = dataclasses.replace(plan, queue=scenario.queue)
    if scenario.gpu_pick is not None:
        # Merged vectors name no device, so an explicit dot-product pick looks at devices one by one.
        dim = "share" if scenario.gpu_pick == "dot_product" and plan.gpu_dim == "merge" else plan.gpu_dim
        plan = dataclasses.replace(plan, gpu_pick=scenario.gpu_pick, gpu_dim=dim)
    return plan


def _options(scenario: Scenario, cluster: Cluster, untuned: Workload, progress: Progress | None) -> Any:
    from fastsim.engine import OnlineOptions
    from fastsim.stages import Inflation

    retarget = scenario.retarget
    return OnlineOptions(
        seed=scenario.seed,
        sample_s=scenario.sample_s,
        until_s=scenario.until_s,
        record=scenario.record,
        deschedule=tuple(_deschedule(step) for step in scenario.deschedule),
        inflation=None if scenario.inflation is None else Inflation(scenario.inflation, scenario.seed),
        retarget=None if retarget is None else sources.typical_from(retarget, untuned, cluster),
        progress=progress,
    )


def _deschedule(step: Any) -> Deschedule:
    """The step ``"frag_one_pod:0.05"`` (after the run) or ``"cos_sim:0.1@3600"`` (at a time in seconds)."""
    from fastsim.stages import Deschedule

    if isinstance(step, Deschedule):
        return step
    expected = "a text such as 'frag_one_pod:0.05' or 'cos_sim:0.1@3600'"
    name, _, rest = str(step).partition(":")
    ratio, at, when = rest.partition("@")
    try:
        share, at_s = float(ratio), float(when) if at else None
    except ValueError:
        raise ScenarioError("deschedule", repr(step), expected) from None
    if not 0 <= share <= 1 or (at_s is not None and not 0 <= at_s < float("inf")):
        raise ScenarioError("deschedule", repr(step), "a ratio from 0 to 1 and a time of 0 or more")
    return Deschedule(_descheduler(name.strip()), share, at_s)


def _descheduler(name: str) -> Any:
    from fastsim.policies.deschedule import DESCHEDULERS
    from fastsim.spelling import suggestion

    if name not in DESCHEDULERS:
        raise PolicyError(f"deschedule {name!r}", "an unknown name", f"one of {', '.join(DESCHEDULERS)}",
                          suggestion(name, DESCHEDULERS))  # fmt: skip
    return DESCHEDULERS[name]()


def _citations(policy: Any) -> tuple[str, ...]:
    parts = [summand for _, summand in policy] if hasattr(policy, "integer_parts") else [policy]
    found = dict.fromkeys(getattr(part, "citation", "") for part in parts)
    return tuple(text for text in found if text)


def _provenance(scenario: Scenario) -> dict[str, Any]:
    known = {"policy": str(scenario.policy), "compat": sorted(switches_on(scenario.compat))}
    try:
        return {**known, "scenario": scenario.to_dict(), "scenario_id": scenario.id}
    except ScenarioError:  # objects in memory; the engine notes their checksums
        return known


def _warn_about_large_pods(cluster: Cluster, workload: Workload) -> None:
    from fastsim.oversize import oversized

    count, example = oversized(cluster, workload)
    if count:
        subject = "1 pod is" if count == 1 else f"{count:,} pods are"
        warnings.warn(
            f"{subject} larger than any node and will stay unplaced, for example {example}", PodTooLarge, stacklevel=4
        )


def _warn_about_columns(workload: Workload) -> None:
    ignored = [name for name in NOT_HONOURED if name in workload.columns]
    if ignored:
        text = f"{workload.name}: the online engine does not look at {', '.join(ignored)}"
        warnings.warn(text, ColumnIgnored, stacklevel=4)


Message = tuple[type[Warning], str]


def _run_quietly(scenario: Scenario) -> tuple[Result, set[Message]]:
    """One run in a worker: its warnings travel with the result, because a worker has nobody to tell."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunWarning)
        result = run(scenario)
    return result, {(item.category, str(item.message)) for item in caught if issubclass(item.category, RunWarning)}


def _repeat(messages: set[Message]) -> None:
    for category, message in sorted(messages, key=lambda pair: pair[1]):
        warnings.warn(message, category, stacklevel=3)


def _check_policy(value: Any) -> None:
    if isinstance(value, str):
        registry.parse(value)
    elif not callable(getattr(value, "plan", None)):
        raise PolicyError("policy", type(value).__name__, "a text or an object with a plan(cluster, workload) method")
    elif hasattr(value, "check"):
        value.check()


def _one_of(field: str, known: tuple[str, ...]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if value is not None and value not in known:
            raise ScenarioError(field, repr(value), f"one of {', '.join(known)}")

    return check


def _check_deschedule(value: tuple[Any, ...]) -> None:
    for step in value:
        _deschedule(step)


spec.CHECKS.update(
    cluster=sources.cluster_from,
    workload=sources.workload_from,
    policy=_check_policy,
    queue=_one_of("queue", QUEUES[:5]),  # the compiled engine knows these
    gpu_pick=_one_of("gpu_pick", GPU_PICKS),
    deschedule=_check_deschedule,
    compat=switches_on,
)
