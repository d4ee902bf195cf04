"""Placement by what GPUs were seen to do last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy

if TYPE_CHECKING:
    from fastsim.engine.online.plan import PodRequest


class Seen:
    """A scorer of readings; ``sees_telemetry`` distinguishes it from scorers of requests."""

    sees_telemetry = True

    def __init__(self, points: Callable[[Any], Any]) -> None:
        self.points = points

    def __call__(self, nodes: Any, pod: PodRequest) -> Any:
        """Points of every node, whatever the pod."""
        return self.points(nodes)


@dataclass(frozen=True)
class Watched(Summand):
    """A summand that looks at the last sample of telemetry; without one it is taken every 15 s."""

    citation: ClassVar[str] = ""
    normalise: ClassVar[str] = "none"

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("python", normalise=self.normalise, scorer=Seen(self.points))

    @staticmethod
    def points(nodes: Any) -> Any:
        """Points of every node from the columns of its last readings."""
        raise NotImplementedError


@policy("least_utilised")
@dataclass(frozen=True)
class LeastUtilised(Watched):
    """Choose the node whose GPUs were least utilised when they were last looked at.

    score = 100 - mean utilisation of the node's GPUs, percent, in whole numbers. It is what the exporter saw last, so
    pods that came since are not in it; mix it with a policy that looks at requests: ``0.7*fgd + 0.3*least_utilised``.
    """

    @staticmethod
    def points(nodes: Any) -> Any:
        """Points of every node: percent that were left over."""
        return (100.5 - nodes.util_pct).astype("int64")


@policy("coolest")
@dataclass(frozen=True)
class Coolest(Watched):
    """Choose the node whose GPUs were coolest when they were last looked at.

    raw = - mean temperature of the node's GPUs, tenths of a degree; spread over 0..100 between the warmest and the
    coolest feasible node.
    """

    normalise: ClassVar[str] = "min_max_100"

    @staticmethod
    def points(nodes: Any) -> Any:
        """Points of every node: the cooler the more."""
        return -(10 * nodes.temperature_c + 0.5).astype("int64")


@policy("least_power")
@dataclass(frozen=True)
class LeastPower(Watched):
    """Choose the node whose GPUs drew least power when they were last looked at.

    raw = - mean power of the node's GPUs, tenths of a watt; spread over 0..100 between the most and the least among
    feasible nodes.
    """

    normalise: ClassVar[str] = "min_max_100"

    @staticmethod
    def points(nodes: Any) -> Any:
        """Points of every node: the fewer watts the more."""
        return -(10 * nodes.gpu_power_w + 0.5).astype("int64")


@policy("most_free_memory")
@dataclass(frozen=True)
class MostFreeMemory(Watched):
    """Choose the node whose GPUs had most free memory when they were last looked at.

    raw = mean free memory of the node's GPUs, MiB; spread over 0..100 between the least and the most among feasible
    nodes.
    """

    normalise: ClassVar[str] = "min_max_100"

    @staticmethod
    def points(nodes: Any) -> Any:
        """Points of every node: free MiB."""
        return nodes.gpu_memory_free_mib.astype("int64")
