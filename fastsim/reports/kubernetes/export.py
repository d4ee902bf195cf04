"""Placements as Kubernetes objects: pods bound to nodes, and on request the nodes, as YAML or JSON.

The fields of a pod are those that the importer reads: requests, shares of devices, chosen devices, models, node
expressions, times. Name and namespace are those of its source, if they are valid in Kubernetes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.result import Result
from fastsim.errors import ResultError, ScenarioError
from fastsim.foundation.parquet import replacing
from fastsim.hardware import mig
from fastsim.hardware.gpu_products import whole_of
from fastsim.hardware.node_constraints import ONE_OF, Constraint, conjunction
from fastsim.kubernetes.devices.device_resources import ALIBABA, FOREIGN, GPU, LACKING, OFFERED, OTHERS, resource_label
from fastsim.kubernetes.devices.gpu_slots import REPLICAS
from fastsim.kubernetes.nodes import IN_BYTES, TAINT
from fastsim.kubernetes.pod_rules.node_affinity import TOLERATED, marked_tolerations
from fastsim.kubernetes.pod_rules.volumes import ABSENT, IN_USE
from fastsim.kubernetes.pods import CREATED, DELETED
from fastsim.reports.kubernetes.originals import bound
from fastsim.scenario import run_inputs
from fastsim.workload import Workload

SUFFIXES = (".yaml", ".yml", ".json")
"""File suffixes of the formats."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_INTERNAL = (TAINT, TOLERATED, OFFERED, LACKING, ABSENT, IN_USE)
"""Prefixes of internal labels, which do not exist in Kubernetes."""


def write_objects(objects: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> int:
    """Write the objects as documents of one YAML file, or as a List in JSON, complete or not at all; their number."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise ScenarioError(str(path), f"a name that ends in {suffix or 'nothing'}", f"one of {', '.join(SUFFIXES)}")
    count = 0
    with replacing(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as text:
        if suffix == ".json":
            items = list(objects)
            json.dump({"apiVersion": "v1", "kind": "List", "items": items}, text, indent=1)
            return len(items)
        yaml = _yaml(str(path))
        for item in objects:
            yaml.dump(item, text, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), explicit_start=True,
                      sort_keys=False)  # fmt: skip
            count += 1
    return count


def saved_run(folder: str | os.PathLike[str]) -> tuple[Result, Cluster, Workload]:
    """A saved run with its cluster and its workload."""
    result = Result.load(folder)
    scenario = result.origin(str(folder), allow_code=True)  # its policy is never made
    cluster, workload, _ = run_inputs.inputs_from(scenario.cluster, scenario.workload)
    return result, cluster, workload


def bound_pods(
    result: Result, workload: Workload, *, at_s: float | None = None, every: bool = False,
    originals: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Pods on their nodes: those that run at `at_s` seconds, or at the end; with `every` all that ever ran.

    If a pod ran several times, its last run counts. Annotations have times in seconds of the run. A pod among
    `originals` is that object with its node and numbers of devices, and with `every` its times.
    """
    bodies = originals or {}
    placements = result.placements
    if placements.is_empty():
        raise ResultError("export: found no placements, expected a run that recorded them (record='all')")
    placed = placements.filter(pl.col("node_id") >= 0)
    if at_s is not None:
        placed = placed.filter((pl.col("start_s") <= at_s) & (pl.col("end_s").fill_null(at_s + 1) > at_s))
    elif not every:
        placed = placed.filter(pl.col("reason").cast(pl.String) == "running")
    last = placed.sort("start_s").unique("pod_id", keep="last", maintain_order=True)
    places = {row["pod_id"]: row for row in last.iter_rows(named=True)}
    for batch in workload.batches():
        for row in batch.to_pylist():
            place = places.get(row["pod_id"])
            if place is None:
                continue
            body = bodies.get(row.get("native_id") or "")
            yield pod_object(row, place, over=at_s is None) if body is None else bound(body, row, place, every)


def pod_object(row: Mapping[str, Any], place: Mapping[str, Any], over: bool = True) -> dict[str, Any]:
    """One pod of a pod table on the node of one row of placements; with `over` its end is included."""
    namespace, name = _name(row)
    done = over and place["end_s"] is not None and str(place["reason"]) != "running"
    notes = {**_device_notes(row, place), CREATED: f"{row['submit_s']:.15g}"}
    if done:
        notes[DELETED] = f"{place['end_s']:.15g}"
    labels = {"kai.scheduler/queue": str(row["tenant"])} if row.get("tenant") else {}
    spec: dict[str, Any] = {"nodeName": place["node"]}
    if row.get("priority") is not None:
        spec["priority"] = row["priority"]
    affinity = _affinity(row.get("constraints") or ())
    if affinity:
        spec["affinity"] = affinity
    if tolerations := marked_tolerations(row.get("constraints") or ()):
        spec["tolerations"] = tolerations
    amounts = _amounts(row)
    spec["containers"] = [{"name": "main", "image": "pause", "resources": {"requests": amounts, "limits": amounts}}]
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": notes}
    status = {"phase": "Succeeded" if done else "Running"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def node_objects(
    cluster: Cluster, originals: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[dict[str, Any]]:
    """The nodes, with labels, taints and resources; one among `originals` is that object."""
    bodies = originals or {}
    for row in cluster.nodes.to_pylist():
        if row["name"] in bodies:
            yield dict(bodies[row["name"]])
            continue
        row_labels = dict(row["labels"] or ())
        taints = [key.removeprefix(TAINT) for key in row_labels if key.startswith(TAINT)]
        counted = _counted(row_labels)
        labels = {key.removeprefix("label:"): text for key, text in row_labels.items() if not key.startswith(_INTERNAL)}
        if row["gpu_model"] and counted not in OTHERS:
            model, parts = whole_of(row["gpu_model"])
            labels.setdefault("nvidia.com/gpu.product", model)
            if row["gpu_memory_mib"]:
                labels.setdefault("nvidia.com/gpu.memory", str(row["gpu_memory_mib"] * parts))
        offered = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi",
                   **({} if row["max_pods"] is None else {"pods": str(row["max_pods"])}),
                   **({counted: str(_slots(row, row_labels))} if _slots(row, row_labels) else {}),
                   **_further(dict(row["extra_resources"] or ())),
                   **_further(dict(mig.instances(row["mig"], row["num_gpu"])[1]))}  # fmt: skip
        yield {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": row["name"], "labels": labels},
            "spec": {"taints": [_taint(text) for text in taints]} if taints else {},
            "status": {"allocatable": offered, "capacity": offered},
        }  # fmt: skip


def _slots(row: Mapping[str, Any], labels: Mapping[str, str]) -> int:
    """Amount of the resource that counts a node's devices: whole devices, or the slots of divided ones."""
    whole = row["num_gpu"] - mig.instances(row["mig"], row["num_gpu"])[0]
    replicas = labels.get(REPLICAS, "1")
    divided = whole and whole_of(row["gpu_model"])[1] == 1 and replicas.isascii() and replicas.isdigit()
    return int(whole * max(int(replicas), 1)) if divided else whole


def _counted(labels: Collection[str]) -> str:
    """The resource that counts devices, by the labels of a node or the expressions of a pod."""
    return next((name for name in FOREIGN if resource_label(name) in labels), GPU)


def _taint(text: str) -> dict[str, str]:
    key, _, rest = text.partition("=")
    value, _, effect = rest.rpartition(":")
    return {"key": key, "value": value, "effect": effect}


def _name(row: Mapping[str, Any]) -> tuple[str, str]:
    namespace, _, name = str(row.get("native_id") or "").rpartition("/")
    if _NAME.fullmatch(name) and (not namespace or _NAME.fullmatch(namespace)):
        return namespace or "default", name
    return "default", f"pod-{row['pod_id']}"


def _device_notes(row: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, str]:
    """Shares, models and numbers of devices, as annotations of Alibaba's dialect, which has all of them."""
    notes: dict[str, str] = {}
    if not row["num_gpu"]:
        return notes
    if row.get("gpu_memory_mib"):
        notes[f"{ALIBABA}gpu-mem"] = f"{row['gpu_memory_mib']}Mi"
    elif row["gpu_milli"] < 1000:
        notes[f"{ALIBABA}gpu-milli"] = str(row["gpu_milli"])
    if notes:
        notes[f"{ALIBABA}gpu-count"] = str(row["num_gpu"])
    if row.get("gpu_models"):
        notes[f"{ALIBABA}gpu-card-model"] = "|".join(row["gpu_models"])
    if place["gpu_ids"]:
        notes[f"{ALIBABA}gpu-index"] = "-".join(map(str, place["gpu_ids"]))
    return notes


def _amounts(row: Mapping[str, Any]) -> dict[str, str]:
    whole = row["num_gpu"] and row["gpu_milli"] == 1000 and not row.get("gpu_memory_mib")
    instances = dict(mig.request(row["mig"])) if row.get("mig") else {}
    return {
        "cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi",
        **({_counted([item["key"] for item in row.get("constraints") or ()]): str(row["num_gpu"])} if whole else {}),
        **_further(dict(row.get("extra_resources") or ())), **_further(instances),
    }  # fmt: skip


def _further(amounts: Mapping[str, int]) -> dict[str, str]:
    """Further resources under their Kubernetes names."""
    return {
        (f"nvidia.com/{name}" if name.startswith(mig.PREFIX) else name): f"{amount}Mi"
        if name.startswith(IN_BYTES)
        else str(amount)
        for name, amount in amounts.items()
    }


def _affinity(constraints: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Node expressions; taints are left out, as the pod is bound already."""
    plain: list[Constraint] = []
    choices: list[list[tuple[Constraint, ...]]] = []
    for item in constraints:
        one = Constraint(str(item["key"]), str(item["op"]), tuple(item["values"] or ()))
        if one.op == ONE_OF:
            choices.append([conjunction(text) for text in one.values])
        elif not one.key.startswith(_INTERNAL):
            plain.append(one)
    terms = [_term([*plain, *(one for part in parts for one in part)]) for parts in product(*choices)]
    hard = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": hard} if all(terms) else {}


def _term(constraints: Iterable[Constraint]) -> dict[str, Any]:
    """One of the ``nodeSelectorTerms``: expressions that hold together."""
    labels, names = [], []
    for one in constraints:
        expression: dict[str, Any] = {"key": one.key.removeprefix("label:"), "operator": one.op}
        if one.values:
            expression["values"] = list(one.values)
        if one.key == "name":
            names.append({**expression, "key": "metadata.name"})
        else:
            labels.append(expression)
    return {name: items for name, items in (("matchExpressions", labels), ("matchFields", names)) if items}


def _yaml(where: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ScenarioError(
            where, "no PyYAML", "a writer of YAML", "pip install 'fastsim-gpu[k8s]', or .json"
        ) from None
    return yaml
