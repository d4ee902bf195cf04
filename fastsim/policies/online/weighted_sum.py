"""The base of placement policies: weights, sums, and the rule that picks the GPUs of a mix.

A :class:`Summand` scores nodes with one kernel. ``0.9 * FGD() + 0.1 * PWR()`` is a
:class:`WeightedSum`; its weights become the smallest integers with the same ratios, so float noise
can never break a tie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from fastsim.engine.online.plan import GPU_PICKS, OnlinePlan, ScoreTerm
from fastsim.errors import PolicyError
from fastsim.policies.registry import about

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload

Weight = int | float | Decimal | Fraction

# On equal weights the first of these decides how the GPUs of a mix are picked.
PICK_ORDER = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd", "pwr", "simon", "python")

# Scores go up to 100 and the total of a node is a 64-bit integer.
LARGEST_WEIGHT_SUM = (2**63 - 1) // 100


@dataclass(frozen=True)
class Summand:
    """A policy made of one scoring kernel; it may be weighed and added to others."""

    policy_name: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    engine: ClassVar[str] = "pods"
    picks_gpus: ClassVar[bool] = True
    """Whether its rule that picks GPUs may be that of a mix."""

    gpu_pick: str | None = field(
        default=None,
        kw_only=True,
        metadata=about("which GPUs of the chosen node are taken; none = the policy's own rule", choices=GPU_PICKS),
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            choices, value = item.metadata.get("choices", ()), getattr(self, item.name)
            if choices and value not in choices and value != item.default:
                where = f"policy {self.policy_name}, parameter {item.name}"
                raise PolicyError(where, repr(value), f"one of {', '.join(choices)}")

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        raise NotImplementedError

    def terms(self) -> tuple[ScoreTerm, ...]:
        """The scores that it is the sum of."""
        return (self.term(),)

    def most(self) -> int:
        """Its largest points, in hundreds."""
        return 1

    def kernel(self) -> str:
        """The name of its compiled score, known without what the score needs."""
        return self.term().kernel

    def own_gpu_pick(self) -> str:
        """The rule by which this policy picks GPUs by default."""
        return "best"

    def plan(self, cluster: Cluster, workload: Workload) -> OnlinePlan:
        """The plan of this policy alone."""
        return self._alone().plan(cluster, workload)

    def _alone(self) -> WeightedSum:
        return WeightedSum(((Fraction(1), self),))

    def __mul__(self, weight: Weight) -> WeightedSum:
        return self._alone() * weight

    def __rmul__(self, weight: Weight) -> WeightedSum:
        return self * weight

    def __add__(self, other: Summand | WeightedSum) -> WeightedSum:
        return self._alone() + other

    def __str__(self) -> str:
        options = [
            f"{item.name}={getattr(self, item.name)}"
            for item in fields(self)
            if getattr(self, item.name) != item.default
        ]
        name = self.policy_name or type(self).__name__  # a class that is not registered has no other
        return f"{name}({', '.join(options)})" if options else name


@dataclass(frozen=True)
class WeightedSum:
    """Sum of policies, each with an exact weight; the node with the largest total wins."""

    engine: ClassVar[str] = "pods"

    parts: tuple[tuple[Fraction, Summand], ...]

    def __mul__(self, weight: Weight) -> WeightedSum:
        factor = exact_weight(weight)
        return WeightedSum(tuple((factor * own, summand) for own, summand in self.parts))

    def __rmul__(self, weight: Weight) -> WeightedSum:
        return self * weight

    def __add__(self, other: Summand | WeightedSum) -> WeightedSum:
        if isinstance(other, Summand):
            other = other._alone()
        if not isinstance(other, WeightedSum):
            return NotImplemented
        return WeightedSum(self.parts + other.parts)

    def integer_parts(self) -> tuple[tuple[int, Summand], ...]:
        """Summands that count, in canonical order, with the smallest integers of the same ratios."""
        total: dict[Summand, Fraction] = {}
        for weight, summand in self.parts:
            total[summand] = total.get(summand, Fraction(0)) + weight
        positive = [(weight, summand) for summand, weight in total.items() if weight > 0]
        if not positive:
            raise PolicyError("policy weights", "weights that sum to nothing", "at least one weight above 0")
        scale = math.lcm(*(weight.denominator for weight, _ in positive))
        whole = [int(weight * scale) for weight, _ in positive]
        divisor = math.gcd(*whole)
        most = [number * summand.most() for number, (_, summand) in zip(whole, positive, strict=True)]
        if sum(most) // divisor > LARGEST_WEIGHT_SUM:
            raise PolicyError("policy weights", "ratios too fine for 64-bit totals", "weights with fewer digits")
        parts = [(number // divisor, summand) for number, (_, summand) in zip(whole, positive, strict=True)]
        return tuple(sorted(parts, key=lambda part: (_rank(part[1]), str(part[1]))))

    def check(self) -> None:
        """Raise :class:`PolicyError` if the weights have no usable ratios, or the parts set different GPU picks."""
        _picked_by(self.integer_parts())

    def plan(self, cluster: Cluster, workload: Workload) -> OnlinePlan:
        """The plan of the whole sum."""
        parts = self.integer_parts()
        pick = _picked_by(parts)
        dim, norm = _pick_vectors(parts) if pick == "dot_product" else ("merge", "max")
        terms = tuple(
            replace(term, weight=weight * term.weight) for weight, summand in parts for term in summand.terms()
        )  # fmt: skip
        return OnlinePlan(terms, gpu_pick=pick, gpu_dim=dim, gpu_norm=norm)

    def __iter__(self) -> Iterator[tuple[int, Summand]]:
        return iter(self.integer_parts())

    def __str__(self) -> str:
        parts = self.integer_parts()
        if len(parts) == 1:
            return str(parts[0][1])
        return " + ".join(str(summand) if weight == 1 else f"{weight}*{summand}" for weight, summand in parts)


def exact_weight(value: Weight) -> Fraction:
    """The decimal number a weight is written as, exactly: 0.1 is 1/10, not its nearest double."""
    try:
        weight = Fraction(Decimal(repr(value)) if isinstance(value, float) else value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise PolicyError("policy weights", repr(value), "a finite number of 0 or more") from None
    if weight < 0:
        raise PolicyError("policy weights", str(value), "weights of 0 or more")
    return weight


def _rank(summand: Summand) -> int:
    kernel = summand.kernel()
    return PICK_ORDER.index(kernel) if kernel in PICK_ORDER else len(PICK_ORDER)


def _picked_by(parts: tuple[tuple[int, Summand], ...]) -> str:
    picks = sorted({summand.gpu_pick for _, summand in parts if summand.gpu_pick is not None})
    if len(picks) > 1:
        raise PolicyError("policy weights", f"gpu_pick {' and '.join(picks)}", "one gpu_pick for the whole sum")
    if picks:
        return picks[0]
    picking = [(weight, summand) for weight, summand in parts if summand.picks_gpus] or parts
    heaviest = max(weight for weight, _ in picking)
    return next(summand for weight, summand in picking if weight == heaviest).own_gpu_pick()


def _pick_vectors(parts: tuple[tuple[int, Summand], ...]) -> tuple[str, str]:
    """Vectors for ``gpu_pick=dot_product``: those of the sum's own dot product, else per device."""
    vectors = [
        (term.dim, term.norm) for _, summand in parts for term in summand.terms() if term.kernel == "dot_product"
    ]
    dim, norm = vectors[0] if vectors else ("share", "max")
    # Merged vectors describe a whole node, so they name no device.
    return ("share" if dim == "merge" else dim), norm
