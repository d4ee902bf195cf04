"""Alignment of a pod's request with a node's free resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fastsim.engine.online.plan import DIMS, NORMS, ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import about, policy


@policy("dot_product")
@dataclass(frozen=True)
class DotProduct(Summand):
    """Prefer the node whose free vector points least along the pod's request vector.

    score = trunc(100 * (1 - mean_i(free_i * request_i))) over normalised (CPU, GPU) components, the
    largest over the candidate vectors that ``dim`` makes of one node.
    """

    citation: ClassVar[str] = """@inproceedings{grandl2014tetris,
  title = {Multi-resource packing for cluster schedulers},
  author = {Grandl, Robert and Ananthanarayanan, Ganesh and Kandula, Srikanth and Rao, Sriram and Akella, Aditya},
  booktitle = {ACM SIGCOMM},
  year = {2014}
}"""

    dim: str = field(
        default="merge",
        metadata=about(
            "vectors of a node: merge = all GPUs as one; share = one per usable device; "
            "divide = share with a device's part of the CPU; extend = one component per device",
            choices=DIMS,
        ),
    )
    norm: str = field(
        default="max",
        metadata=about(
            "what components are divided by: the node's capacity, the pod's request, "
            "or 128000 milli-CPU and 8000 milli-GPU",
            choices=NORMS,
        ),
    )

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("dot_product", dim=self.dim, norm=self.norm)

    def own_gpu_pick(self) -> str:
        """The device of the best vector; merged vectors name none, so the tightest that fits."""
        return "best" if self.dim == "merge" else "dot_product"
