"""Fragmentation and power of one node, as the formulas read.

The free milli-GPU of a node is split into seven classes by what each typical pod could use of it; all
but class ``q3_satisfied`` is fragmentation. Power is a step function: any use of a device or of a CPU
socket turns all of it on.
"""

from __future__ import annotations

from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.nodes import WHOLE, Node, accepts

CLASSES = (
    "q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access",
)  # fmt: skip
Q1, Q2, Q3, Q4, XL, XR, NA = range(7)


def parts(node: Node, typical: TypicalPods, row: int) -> list[tuple[int, int]]:
    """The node's free milli-GPU split for one typical pod: pairs (class, milli-GPU)."""
    cpu, milli, gpus = typical.cpu_milli[row], typical.gpu_milli[row], typical.num_gpu[row]
    total, has_cpu = node.gpu_total, node.cpu_free >= cpu
    if milli == 0:
        return [(XL if has_cpu else XR, total)]
    if not accepts(typical.gpu_models[row], node.shape.gpu_model):
        return [(NA, total)]
    has_gpu = sum(free >= milli for free in node.gpu_free) >= gpus
    if has_gpu and has_cpu:
        small = sum(free for free in node.gpu_free if free < milli)
        return [(Q2, small), (Q3, total - small)]
    if has_gpu:
        return [(Q4, total)]
    return [(Q2 if has_cpu else Q1, total)]


class Fragmentation:
    """Fragmentation of nodes for one list of typical pods; results are cached."""

    def __init__(self, typical: TypicalPods) -> None:
        self.typical = typical
        self._weighed: dict[tuple[object, ...], tuple[float, ...]] = {}
        self._counted: dict[tuple[object, ...], tuple[int, ...]] = {}

    def classes(self, node: Node) -> tuple[float, ...]:
        """Expected milli-GPU of each class: sum over typical pods of frequency * part.

        Added in list order in float64, because scores made of these sums are truncated.
        """
        key = (node.shape.gpu_model, node.cpu_free, node.gpu_free)
        if key not in self._weighed:
            sums = [0.0] * len(CLASSES)
            for row, frequency in enumerate(self.typical.frequency):
                for kind, milli in parts(node, self.typical, row):
                    sums[kind] += frequency * milli
            self._weighed[key] = tuple(sums)
        return self._weighed[key]

    def fragment(self, node: Node) -> float:
        """F: expected milli-GPU the next pod cannot use, every class but q3, added in class order."""
        q1, q2, _, q4, xl, xr, na = self.classes(node)
        return q1 + q2 + q4 + xl + xr + na

    def counted(self, node: Node) -> tuple[int, ...]:
        """The classes with counts instead of frequencies: exact integers, for sums over nodes."""
        key = (node.shape.gpu_model, node.cpu_free, node.gpu_free)
        if key not in self._counted:
            sums = [0] * len(CLASSES)
            for row, count in enumerate(self.typical.count):
                for kind, milli in parts(node, self.typical, row):
                    sums[kind] += count * milli
            self._counted[key] = tuple(sums)
        return self._counted[key]


def gpu_power(node: Node) -> int:
    """Milliwatts of all devices: idle power of an unused device, else its peak power.

    Of partitioned GPUs, the share of the instances in use draws peak power, the rest idle power.
    """
    shape, idle = node.shape, len(node.idle_devices)
    unused = shape.mig_gpus * WHOLE - node.mig_used
    parts = (shape.gpu_idle_mw * unused + shape.gpu_peak_mw * node.mig_used) // WHOLE
    return shape.gpu_idle_mw * idle + shape.gpu_peak_mw * (len(node.gpu_free) - idle) + parts


def cpu_power(node: Node) -> int:
    """Milliwatts of all CPU sockets; two vCPU share a core and a used core turns its socket on."""
    shape = node.shape
    cores = _ceil(shape.cpu_milli, 2 * WHOLE)
    working = cores - node.cpu_free // (2 * WHOLE)
    sockets = _ceil(cores, shape.cpu_cores_per_socket)
    active = _ceil(working, shape.cpu_cores_per_socket)
    return shape.cpu_peak_mw * active + shape.cpu_idle_mw * (sockets - active)


def power(node: Node) -> int:
    """Milliwatts of the node."""
    return gpu_power(node) + cpu_power(node)


def _ceil(amount: int, unit: int) -> int:
    return -(-amount // unit)
