"""A dump of a Kubernetes cluster, as ``kubectl get nodes,pods,... -A -o json`` writes it, drawn from a seed.

Half of the pods run on nodes, the others wait. Pods belong to DaemonSets, Deployments, StatefulSets and Jobs; they have
tolerations, affinity to labels of nodes, injected volumes and statuses, but no ``managedFields``.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastsim.errors import ScenarioError
from fastsim.foundation.parquet import replacing

Object = dict[str, Any]

POOLS = (
    ("a100", "NVIDIA-A100-SXM4-80GB", 81920, 8, 96, 1024),
    ("l4", "NVIDIA-L4", 23034, 4, 64, 256),
    ("t4", "Tesla-T4", 15360, 4, 48, 192),
    ("cpu", "", 0, 0, 64, 256),
)
"""Pools of nodes: name, product and MiB of GPUs, GPUs, CPUs, GiB."""
GPU, INSTANCE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
"""Resources that pods ask for: whole GPUs, and a seventh of an A100."""
IN_PARTS = 0.5
"""Part of the waiting workloads for A100s that ask for instances, although no board is divided."""
DAEMONS = ("dcgm-exporter", "node-exporter")
"""DaemonSets with a pod on every node."""
AGO = "2026-01-{:02}T{:02}:{:02}:{:02}Z"
TOLERATED: list[Object] = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
"""Tolerations that admission adds to every pod."""
GPU_TAINT: Object = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Dump:
    """The objects of a cluster of so many nodes and pods, of which a half run.

    ``full``: with conditions, injected volumes and what else the API server writes, which is most of a dump.
    """

    def __init__(self, nodes: int, pods: int, seed: int = 0, full: bool = False) -> None:
        self.draw, self.count, self.pods, self.full = random.Random(seed), nodes, pods, full
        self.room: dict[str, list[list[Any]]] = {pool[0]: [] for pool in POOLS}

    def objects(self) -> Iterator[Object]:
        """Nodes, then pods: those of DaemonSets, and those of workloads that run or wait."""
        yield from (self._node(number) for number in range(self.count))
        left, running = self.pods, self.pods // 2
        for name in DAEMONS:
            for number in range(min(self.count, left, running)):
                yield self._pod(self._daemon(name), name, "gpu-operator", node=f"node-{number:05}")
                left, running = left - 1, running - 1
        while left > 0:
            size = min(left, self.draw.choice((1, 1, 2, 4, 8, 8, 16, 32, 64)))
            for pod in self._workload(size, running > 0):
                running -= bool(pod["spec"].get("nodeName"))
                left -= 1
                yield pod

    def _node(self, number: int) -> Object:
        pool, product, mib, gpus, cpus, gib = POOLS[(0, 0, 1, 1, 1, 2, 2, 3)[number % 8]]
        name = f"node-{number:05}"
        labels = {
            "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": f"zone-{number % 3}", "topology.kubernetes.io/region": "region-1",
            "node.kubernetes.io/instance-type": f"{pool}.{gpus}x", "example.com/pool": pool,
        }  # fmt: skip
        amounts = {"cpu": str(cpus), "memory": f"{gib * 1048576 - 2097152}Ki", "ephemeral-storage": "1843269236Ki",
                   "hugepages-1Gi": "0", "hugepages-2Mi": "0", "pods": "110"}  # fmt: skip
        if gpus:
            labels |= {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus),
                       "nvidia.com/gpu.memory": str(mib), "nvidia.com/gpu.present": "true"}  # fmt: skip
            amounts[GPU] = str(gpus)
        self.room[pool].append([name, cpus * 1000 - 400, gib * 1024 - 4096, gpus, 100])
        conditions = [] if not self.full else [
            {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": "Kubelet",
             "lastHeartbeatTime": self._time(), "lastTransitionTime": self._time()}
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        ]  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "uid": self._uid(), "creationTimestamp": self._time(),
                         "resourceVersion": str(1000 + number)},
            "spec": {"providerID": f"cloud:///{name}"} | ({"taints": [GPU_TAINT]} if gpus else {}),
            "status": {"allocatable": amounts, "capacity": {**amounts, "memory": f"{gib * 1048576}Ki"},
                       "conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.34.1", "architecture": "amd64"}},
        }  # fmt: skip

    def _workload(self, size: int, run: bool) -> Iterator[Object]:
        """Pods of one template; those that find no node wait."""
        kind = self.draw.choice(("ReplicaSet", "ReplicaSet", "StatefulSet", "Job", "Job"))
        pool, _, _, most, _, _ = POOLS[self.draw.choice((0, 1, 2, 3, 3, 3))]
        gpus = self.draw.choice([count for count in (1, 1, 1, 2, 8) if count <= most]) if most else 0
        name = f"{self.draw.choice(('train', 'serve', 'eval', 'etl'))}-{self._random(6)}"
        template = self._template(pool, gpus)
        if pool == "a100" and not run and self.draw.random() < IN_PARTS:
            template["containers"][0]["resources"] = {"requests": {"cpu": "4", "memory": "16Gi", INSTANCE: "1"}}
        namespace = f"team-{self.draw.randrange(40)}"
        labels = {"app": name, "example.com/team": namespace, "example.com/cost-center": str(self.draw.randrange(9))}
        hashed = self._random(9)
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": self._uid(), "controller": True}
        if kind == "ReplicaSet":
            owner["name"] = name = f"{name}-{hashed}"
            labels["pod-template-hash"] = hashed
        if kind == "Job":
            labels |= {"batch.kubernetes.io/job-name": name, "job-name": name}
        for number in range(size):
            own = dict(labels)
            if kind == "StatefulSet":
                own |= {"apps.kubernetes.io/pod-index": str(number), "statefulset.kubernetes.io/pod-name":
                        f"{name}-{number}", "controller-revision-hash": f"{name}-{hashed}"}  # fmt: skip
            node = self._room(pool, template) if run else None
            suffix = str(number) if kind == "StatefulSet" else self._random(5)
            yield self._pod(template, name, namespace, f"{name}-{suffix}", own, owner, node)

    def _template(self, pool: str, gpus: int) -> Object:
        cpus, gib = self.draw.choice((1, 2, 4)) * max(gpus, 1), self.draw.choice((2, 4, 8)) * max(gpus, 1)
        amounts = {"cpu": str(cpus) if gpus else "500m", "memory": f"{gib}Gi"}
        amounts |= {GPU: str(gpus)} if gpus else {}
        in_pool = {"key": "example.com/pool", "operator": "In", "values": [pool]}
        affinity = {"nodeAffinity": {HARD: {"nodeSelectorTerms": [{"matchExpressions": [in_pool]}]}}}
        container: Object = {
            "name": "main", "image": f"registry.example.com/{pool}/image:{self.draw.randrange(99)}",
            "resources": {"requests": amounts},
        }  # fmt: skip
        if self.full:
            container["resources"] = {"limits": amounts, "requests": amounts}
            container |= {"env": [{"name": "LOG_LEVEL", "value": "info"}], "imagePullPolicy": "IfNotPresent",
                          "terminationMessagePath": "/dev/termination-log"}  # fmt: skip
        extra = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}] if gpus else []
        chosen = {"affinity": affinity} if self.draw.random() < 0.7 else {"nodeSelector": {"example.com/pool": pool}}
        return {
            **chosen, "containers": [container], "tolerations": [*extra, *(TOLERATED if self.full else ())],
            "restartPolicy": "Always", "priority": self.draw.choice((0, 0, 0, 1000)),
        }  # fmt: skip

    def _daemon(self, name: str) -> Object:
        amounts = {"cpu": "100m", "memory": "128Mi"}
        container = {"name": name, "image": f"registry.example.com/{name}:1", "resources": {"requests": amounts}}
        return {"containers": [container], "tolerations": [{"operator": "Exists"}], "priority": 2000001000,
                "priorityClassName": "system-node-critical"}  # fmt: skip

    def _pod(
        self, template: Object, owner_name: str, namespace: str, name: str = "", labels: Object | None = None,
        owner: Object | None = None, node: str | None = None,
    ) -> Object:  # fmt: skip
        spec = self._injected(template) if self.full else dict(template)
        if owner is None:  # a DaemonSet chooses the node by its name
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            spec["affinity"] = {"nodeAffinity": {HARD: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner_name, "uid": owner_name,
                     "controller": True}  # fmt: skip
            name, labels = f"{owner_name}-{self._random(7)}", {"app": owner_name, "pod-template-generation": "1"}
        began = self._time()
        if node:
            spec["nodeName"] = node
        return {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner],
                         "uid": self._uid(), "creationTimestamp": began,
                         "resourceVersion": str(self.draw.randrange(10**8))},
            "spec": spec, "status": self._status(spec, began),
        }  # fmt: skip

    def _injected(self, template: Object) -> Object:
        """The spec with what admission adds to it; the name of the volume differs from pod to pod."""
        token = f"kube-api-access-{self._random(7)}"
        mount = {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]
        return {
            **template, "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "preemptionPolicy":
            "PreemptLowerPriority", "schedulerName": "default-scheduler", "securityContext": {},
            "serviceAccountName": "default", "terminationGracePeriodSeconds": 30,
            "containers": [{**one, "volumeMounts": [mount]} for one in template["containers"]],
            "volumes": [{"name": token, "projected": {"defaultMode": 420, "sources": sources}}],
        }  # fmt: skip

    def _status(self, spec: Object, began: str) -> Object:
        if not self.full:
            return {"phase": "Running", "startTime": began} if spec.get("nodeName") else {"phase": "Pending"}
        if not spec.get("nodeName"):
            unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                        "message": "0/5000 nodes are available", "lastTransitionTime": began}  # fmt: skip
            return {"phase": "Pending", "qosClass": "Burstable", "conditions": [unplaced]}
        ready = [{"type": kind, "status": "True", "lastTransitionTime": began}
                 for kind in ("Initialized", "Ready", "PodScheduled")]  # fmt: skip
        statuses = [
            {"name": one["name"], "ready": True, "restartCount": 0, "image": one["image"],
             "containerID": f"containerd://{self.draw.getrandbits(256):064x}",
             "state": {"running": {"startedAt": began}}}
            for one in spec["containers"]
        ]  # fmt: skip
        return {"phase": "Running", "qosClass": "Burstable", "startTime": began, "hostIP": "10.0.0.1",
                "podIP": "10.1.0.1", "conditions": ready, "containerStatuses": statuses}  # fmt: skip

    def _room(self, pool: str, template: Object) -> str | None:
        """A node of the pool with room for a pod of the template, which takes it; None if eight nodes have none."""
        amounts = template["containers"][0]["resources"]["requests"]
        cpu = 500 if amounts["cpu"].endswith("m") else 1000 * int(amounts["cpu"])
        wanted = cpu, 1024 * int(amounts["memory"].removesuffix("Gi")), int(amounts.get(GPU, 0)), 1
        for _ in range(8) if self.room[pool] else ():
            node = self.draw.choice(self.room[pool])
            if all(left >= amount for left, amount in zip(node[1:], wanted, strict=True)):
                node[1:] = [left - amount for left, amount in zip(node[1:], wanted, strict=True)]
                return str(node[0])
        return None

    def _time(self) -> str:
        draw = self.draw.randrange
        return AGO.format(1 + draw(28), draw(24), draw(60), draw(60))

    def _uid(self) -> str:
        text = f"{self.draw.getrandbits(128):032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def _random(self, letters: int) -> str:
        return "".join(self.draw.choices(LETTERS, k=letters))


def write_dump(path: str | os.PathLike[str], nodes: int, pods: int, seed: int = 0, full: bool = False) -> None:
    """The dump as one ``List`` in JSON, complete or not at all."""
    if Path(path).suffix != ".json":
        raise ScenarioError(str(path), f"a name that ends in {Path(path).suffix or 'nothing'}", ".json")
    with replacing(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
        for number, item in enumerate(Dump(nodes, pods, seed, full).objects()):
            file.write((",\n" if number else "") + json.dumps(item, separators=(",", ":")))
        file.write("\n]}\n")
