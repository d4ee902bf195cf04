"""Pods that Kubernetes' controllers create: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, gangs.

A workload whose pods are among the objects adds only the pods that it lacks. It adds none if another workload among the
objects stands for it, as a ReplicaSet does for its Deployment, or if it has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.objects import Manifest, counted_about, mapping, sequence
from fastsim.kubernetes.pod_rules.admission import UNKNOWN_CLASS, PodAdmission
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
from fastsim.kubernetes.pod_rules.node_affinity import DAEMON_TOLERATES, HARD, OVER, Places, allowed, constraints
from fastsim.kubernetes.requests import REQUESTING, Amounts, amount_parts, pod_amounts, with_enacted
from fastsim.kubernetes.workloads.ended_members import ended, pods_gone
from fastsim.kubernetes.workloads.gang_workloads import (
    KUEUE_QUEUE,
    VOLCANO,
    gangs_of,
    has_no_pods,
    is_gang_kind,
    is_held,
    queue_of,
)  # fmt: skip
from fastsim.kubernetes.workloads.owners import (
    REPLICATED,
    WORKLOADS,
    Belonging,
    identity,
    is_finished,
    is_workload,
    owners,
    role_of,
)  # fmt: skip

GROUPS = ("", "apps", "batch", "extensions")
"""API groups of the kinds that are expanded; "" is that of objects without one."""
COPIED_DOWN = ("alibabacloud.com/", "gpu-")
"""Beginnings of annotations that a pod inherits from its workload if the template lacks them."""
QUEUE = "volcano.sh/queue-name"
"""Annotation that names a pod's queue."""
MOST = 1_000_000
"""Most pods of one workload."""
SUCCEEDED, FAILED = OVER
KEPT_NAMES = ("StatefulSet", "DaemonSet")
"""Kinds whose pod is replaced only when the terminating one is gone."""
LEFT_OUT = "pods: left out, because "
"""Beginning of notices about pods that have no row."""
OWN_REASONS = ("scheduling gates hold them", "they are over and their times are unknown")
"""Ends of such notices about pods that are gated or over, which are seen at the pod."""
LACKED = "workloads: pods that are not there yet, beside others of their workloads"


class PodManifest(NamedTuple):
    """One pod, written out or expanded: its place for messages, its parts, and its workload ("" = none).

    `together` is the number of the workload's pods that must start together, if it has one; a `terminating` pod has
    been deleted and still holds its place.
    """

    where: str
    name: str
    namespace: str
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    created: str | None
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    owner: str = ""
    node: str | None = None
    together: int | None = None
    terminating: bool = False

    @property
    def is_held(self) -> bool:
        """Whether scheduling gates hold it back."""
        return is_held(self.spec, self.labels, self.where)


def pods(
    objects: Sequence[Manifest], places: Places, notices: Counter[str], known: WrittenPods | None = None
) -> Iterator[PodManifest]:
    """Every pod in the order of the objects; objects that cannot be expanded are counted in `notices`.

    ``known`` are those that were written out before, for objects which are there again.
    """
    belonging = Belonging(objects)
    admission = PodAdmission.of([item for item in objects if item.kind != "Pod"])
    written = {_namespace(item.part("metadata")) for item in objects if admission.ranges and item.kind == "Pod"}
    if ignored := sum(len(admission.ranges.get(namespace, ())) for namespace in written):
        notices["LimitRange: rules that are ignored for Pods, to which admission applied them"] = ignored
    for item in objects:
        if item.kind == "Pod":
            yield _written(item, admission) if known is None else known.of(item, admission)
        elif is_workload(item) and not belonging.is_represented(item) and not is_finished(item):
            counted_about(notices, f"{item.kind} {_namespace(item.part('metadata'))}/{item.name}")
            for pod in _lacked(item, belonging.pods_of(item), admission, places, notices):
                notices.update([UNKNOWN_CLASS] if admission.lacks(pod.spec) else [])
                yield pod
            counted_about(notices, "")


class WrittenPods:
    """Pods by the objects that they are made of, which stay with them, so that no other object gets their ids."""

    def __init__(self) -> None:
        self._before = dict[int, tuple[Manifest, PodManifest]]()
        self._now = dict[int, tuple[Manifest, PodManifest]]()

    def of(self, item: Manifest, admission: PodAdmission) -> PodManifest:
        """The pod of an object."""
        kept = self._now.get(id(item)) or self._before.get(id(item)) or (item, _written(item, admission))
        self._now[id(item)] = kept
        return kept[1]

    def following(self) -> WrittenPods:
        """Those that are kept for the next reading, which has the same admission: what this one has used."""
        later = WrittenPods()
        later._before = self._now
        return later


def _lacked(
    item: Manifest, there: Sequence[Manifest], admission: PodAdmission, places: Places,
    notices: Counter[str],
) -> Iterator[PodManifest]:  # fmt: skip
    """The pods that a workload lacks: all if none are there or over; counted in `notices` if some are there."""
    if not there and not ended(item):
        yield from _expanded(item, admission, places, notices)
        return
    if item.kind == "CronJob":
        return
    present = [pod for pod in there if _counts(item, pod)]
    expected = list(_expanded(item, admission, places, notices, _succeeded(item, there)))
    lacked = _without(expected, present, item)
    if has_roles(item):
        gone = pods_gone(item, [pod.name for pod in expected], [pod.name for pod in lacked], there)
        lacked = [pod for pod in lacked if pod.name not in gone]
    sizes, left = Counter(pod.owner for pod in expected), Counter(pod.owner for pod in lacked)
    for pod in lacked:
        started = sizes[pod.owner] - left[pod.owner]
        yield pod if pod.together is None else pod._replace(together=max(pod.together - started, 0))
    if lacked and there:
        notices[LACKED] += len(lacked)


def _counts(item: Manifest, pod: Manifest) -> bool:
    """Whether a workload needs no further pod in place of this one."""
    phase, kind = pod.part("status").get("phase"), item.kind
    if not has_roles(item):
        deleted = bool(pod.part("metadata").get("deletionTimestamp")) and kind not in KEPT_NAMES
        return phase not in OVER and not deleted
    return phase != FAILED


def has_roles(item: Manifest) -> bool:
    """Whether the pods of a workload have roles, as those of jobs of Kubeflow and tasks of Volcano."""
    return is_gang_kind(item) or _group(item) == VOLCANO


def _succeeded(item: Manifest, there: Sequence[Manifest]) -> int:
    """Number of a workload's pods that are over: what its status counts, or those that are there."""
    return max(ended(item).total(), sum(1 for pod in there if pod.part("status").get("phase") == SUCCEEDED))


def _without(expected: Sequence[PodManifest], present: Sequence[Manifest], item: Manifest) -> list[PodManifest]:
    """The expected pods without those that are there, by name, by node, or by role."""
    if item.kind == "DaemonSet":
        nodes = {_target(pod) for pod in present}
        return [pod for pod in expected if pod.node not in nodes]
    named = {pod.name for pod in expected}
    others = [pod for pod in present if pod.name not in named]
    named &= {pod.name for pod in present}
    role_names = [role_of(pod) if has_roles(item) else None for pod in others]
    roles = Counter("" if role is None else f"{item.name}-{role}" for role in role_names)
    lacked = []
    for pod in expected:
        role = pod.name.rpartition("-")[0]
        if pod.name in named:
            continue
        taken = role if roles[role] else ""
        if roles[taken]:
            roles[taken] -= 1
        else:
            lacked.append(pod)
    return lacked


def _target(pod: Manifest) -> str | None:
    """The node that a pod of a DaemonSet is on, or is meant for."""
    spec = pod.part("spec")
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    terms = sequence(pod.part("spec", "affinity", "nodeAffinity", HARD), "nodeSelectorTerms", pod.where)
    fields = (field for term in terms for field in sequence(term, "matchFields", pod.where))
    return next((str(value) for field in fields for value in field.get("values") or ()), None)


def without_pods(objects: Sequence[Manifest], notices: Mapping[str, int] = MappingProxyType({})) -> str:
    """Text about objects that yield no pod, and why: suspended Jobs, Deployments scaled to 0, and so on.

    ``notices`` say why other pods, which are neither over nor held, are left out.
    """
    counts = Counter(_podless(item) for item in objects if not _is_candidate(item))
    listed = [f"{count:,} {one if count == 1 else many}" for (one, many), count in sorted(counts.items())]
    reasons = [(count, text.removeprefix(LEFT_OUT)) for text, count in sorted(notices.items())
               if text.startswith(LEFT_OUT) and not text.endswith(OWN_REASONS)]  # fmt: skip
    listed += [
        f"{count:,} {'pod left out' if count == 1 else 'pods left out'}, because {why}" for count, why in reasons
    ]
    return f"{', '.join(listed)} and no {'other pods' if reasons else 'pods that ask for anything'}"


def _is_candidate(item: Manifest) -> bool:
    """Whether an object is a pod that runs, or that waits and that kube-scheduler looks at."""
    if item.kind != "Pod" or item.part("status").get("phase") in OVER:
        return False
    return bool(item.part("spec").get("nodeName")) or not (
        _is_gated(item) or item.part("metadata").get("deletionTimestamp")
    )


def _is_gated(pod: Manifest) -> bool:
    return is_held(pod.part("spec"), pod.part("metadata", "labels"), pod.where)


def _podless(item: Manifest) -> tuple[str, str]:
    """Words for an object without pods, in singular and plural."""
    kind, body = item.kind, item
    if kind == "Pod":
        if item.part("status").get("phase") in OVER:
            return "pod that is over", "pods that are over"
        gone = ("pod that is being deleted", "pods that are being deleted")
        return ("gated pod", "gated pods") if _is_gated(item) else gone
    if kind not in WORKLOADS and not is_gang_kind(item):
        return f"object of kind {kind}", f"objects of kind {kind}"
    group = _group(item)
    if group not in (*GROUPS, VOLCANO) and not is_gang_kind(item):
        return f"object of kind {kind} of {group}", f"objects of kind {kind} of {group}"
    if has_no_pods(item, item.part("spec")):
        return f"suspended {kind}", f"suspended {kind}s"
    if is_finished(item):
        return f"finished {kind}", f"finished {kind}s"
    if kind == "DaemonSet":
        return "DaemonSet without nodes for it", "DaemonSets without nodes for them"
    if kind == "CronJob":
        body = Manifest(item.where, {**item.part("spec", "jobTemplate"), "kind": "Job"})
        if has_no_pods(body, body.part("spec")):
            return f"{kind} of suspended Jobs", f"{kind}s of suspended Jobs"
    if is_gang_kind(item):
        return f"{kind} without pods", f"{kind}s without pods"
    why = "whose pods are over" if ended(item) else "whose pods left no trace"
    why = why if _pod_counts(body.kind, body)[0] else "scaled to 0"
    return f"{kind} {why}", f"{kind}s {why}"


def _group(item: Manifest) -> str:
    """The group of its API; "" for the core group."""
    return str(item.body.get("apiVersion") or "").rpartition("/")[0]


def pod_specs(item: Manifest) -> list[Mapping[str, Any]]:
    """The ``spec`` of a pod, or of the pods of a workload, once for each of its roles."""
    if item.kind == "Pod":
        return [with_enacted(item.part("spec"), item.part("status"), item.where)]
    if is_gang_kind(item):
        return [mapping(role.template, "spec", item.where) for role in gangs_of(item).roles]
    above = ("spec", "jobTemplate") if item.kind == "CronJob" else ()
    return [item.part(*above, "spec", "template", "spec")] if item.kind in WORKLOADS else []


def distinct_amounts(objects: Iterable[Manifest], kept: KeptParts) -> list[Amounts]:
    """The requests of the pods and of the workloads among objects, equal ones once; objects with errors have none."""
    requests, looked_at = dict[int, Amounts](), set[tuple[int, ...]]()
    for item in objects:
        with suppress(InputError):  # raised when the pod is read
            for spec in pod_specs(item):
                whole = [spec.get(name) for name in REQUESTING]
                ids = tuple(map(id, whole))
                if ids in looked_at:
                    continue
                made, parts = partial(_amounts, spec, item.where), partial(amount_parts, spec, item.where)
                request = kept.of("amounts", parts, made, whole=whole)
                requests[id(request)] = request
                looked_at |= {ids} if spec is item.body.get("spec") else set()  # it stays, and so do the ids
    return list(requests.values())


def _amounts(spec: Mapping[str, Any], where: str, _: Counter[str]) -> Amounts:
    return pod_amounts(spec, where)


def _written(item: Manifest, admission: PodAdmission) -> PodManifest:
    metadata = item.part("metadata")
    owner = next(iter(owners(item)), None)
    spec = with_enacted(item.part("spec"), item.part("status"), item.where)
    if not metadata.get("uid") and not spec.get("nodeName"):
        spec = admission.with_class(spec, item.where)
    return PodManifest(
        where=item.where,
        name=item.name,
        namespace=_namespace(metadata),
        labels=mapping(metadata, "labels", item.where),
        annotations=mapping(metadata, "annotations", item.where),
        created=_text(metadata.get("creationTimestamp")),
        spec=spec,
        status=item.part("status"),
        owner="/".join(owner) if owner else "",
        node=_text(spec.get("nodeName")),
        terminating=bool(metadata.get("deletionTimestamp")),
    )


def _expanded(
    item: Manifest,
    admission: PodAdmission,
    places: Places,
    notices: Counter[str],
    succeeded: int | None = None,
) -> Iterator[PodManifest]:
    """The pods of a workload; of a Job of which some have ``succeeded`` those that may run now."""
    body, group = item, _group(item)
    if is_gang_kind(item):
        yield from _of_roles(item, admission)
        return
    if group == VOLCANO and item.kind == "Job":
        yield from _of_tasks(item, admission)
        return
    if group not in GROUPS:
        notices[f"objects of kind {item.kind} of {group}"] += 1
        return
    if item.kind == "CronJob":
        notices["workloads: a CronJob runs once"] += 1
        body = Manifest(item.where, {**item.part("spec", "jobTemplate"), "kind": "Job"})
        if item.part("spec").get("suspend"):
            return
    template = _template(item, body, admission)
    if item.kind == "DaemonSet":
        yield from _one_on_each_node(template, places, notices)
        return
    count, parallel = _pod_counts(item.kind, body, succeeded)
    if parallel < count:
        notices["workloads: all pods of a Job arrive at once, whatever its parallelism"] += 1
    for number in range(count):
        yield template._replace(name=f"{template.name}-{number}")


def _of_tasks(item: Manifest, admission: PodAdmission) -> Iterator[PodManifest]:
    """The pods of a Job of Volcano; all start together, or ``minAvailable`` of them."""
    spec = item.part("spec")
    tasks = sequence(spec, "tasks", item.where)
    counts = [_count(task, "replicas", 1, item.where) for task in tasks]
    shared = {"priorityClassName": spec["priorityClassName"]} if spec.get("priorityClassName") else {}
    queue = {QUEUE: spec["queue"]} if spec.get("queue") else {}
    least = _count(spec, "minAvailable", sum(counts), item.where)
    for place, (task, count) in enumerate(zip(tasks, counts, strict=True)):
        pod = _template(item, Manifest(item.where, {"spec": task}), admission)
        pod = pod._replace(spec={**shared, **pod.spec}, annotations={**queue, **pod.annotations}, together=least)
        for number in range(count):
            yield pod._replace(name=f"{pod.name}-{task.get('name') or f'default{place}'}-{number}")


def _of_roles(item: Manifest, admission: PodAdmission) -> Iterator[PodManifest]:
    """The pods of a workload with roles, whose gangs start together."""
    gangs = gangs_of(item)
    for role in gangs.roles:
        rows = _template(item, Manifest(item.where, {"spec": {"template": role.template}}), admission)
        owner = f"{rows.owner}/{role.gang}" if role.gang else rows.owner
        rows = rows._replace(owner=owner, together=gangs.together(role))
        for number in range(role.pods):
            yield rows._replace(name=f"{rows.name}-{role.name}-{number}")


def _template(item: Manifest, body: Manifest, admission: PodAdmission) -> PodManifest:
    """The pod of a workload's template, still under the workload's name."""
    own, part = item.part("metadata"), body.part("spec", "template")
    metadata = mapping(part, "metadata", item.where)
    above = mapping(own, "annotations", item.where)
    copied = {key: value for key, value in above.items() if str(key).startswith(COPIED_DOWN)}
    queue = {KUEUE_QUEUE: queue_of(item)} if queue_of(item) else {}
    return PodManifest(
        where=item.where,
        name=item.name,
        namespace=_namespace(own),
        labels={**queue, **mapping(metadata, "labels", item.where)},
        annotations={**copied, **mapping(metadata, "annotations", item.where)},
        created=_text(own.get("creationTimestamp")),
        spec=admission.admitted(mapping(part, "spec", item.where), _namespace(own), item.where),
        status={},
        owner="/".join(identity(item)),
    )


def _pod_counts(kind: str, body: Manifest, succeeded: int | None = None) -> tuple[int, int]:
    """Number of pods of a workload, and of those that may run at the same time.

    Of a Job with pods, of which some may have ``succeeded``, both are the pods that may run now.
    """
    spec = body.part("spec")
    if kind in REPLICATED:
        count = _count(spec, "replicas", 1, body.where)
        return count, count
    parallel = _count(spec, "parallelism", 1, body.where)
    count = _count(spec, "completions", parallel, body.where)
    if has_no_pods(body, spec):
        return 0, 0
    if succeeded is None:
        return count, min(parallel, count)
    # Without a number of completions one success ends the creation of pods.
    left = 0 if succeeded and spec.get("completions") is None else min(parallel, max(count - succeeded, 0))
    return left, left


def _one_on_each_node(template: PodManifest, places: Places, notices: Counter[str]) -> Iterator[PodManifest]:
    if not places.nodes:
        notices["workloads: a DaemonSet without nodes has no pods"] += 1
    tolerations = [{"key": key, "operator": "Exists"} for key in DAEMON_TOLERATES]
    spec = {**template.spec, "tolerations": [*sequence(template.spec, "tolerations", template.where), *tolerations]}
    for name in allowed(constraints(spec, template.where, places), places.nodes):
        yield template._replace(name=f"{template.name}-{name}", spec=spec, node=name)


def _count(spec: Mapping[str, Any], key: str, default: int, where: str) -> int:
    value = spec.get(key, default)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise InputError(f"{where}: spec: {key}", repr(value), f"a whole number, 0 to {MOST:,}")
    return value


def _namespace(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("namespace") or "default")


def _text(value: object) -> str | None:
    return None if value in (None, "") else str(value)
