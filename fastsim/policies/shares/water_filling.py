"""Max-min fairness by water filling, also among entities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import PROGRAM_COMPAT, ShareRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan

INNER = ("fairness", "fifo")
HOLD = ("stuck", "all")
"""Jobs that keep their level after a program: those that cannot rise further, or all that rose in it."""


@policy("max_min_fairness_water_filling")
@dataclass(frozen=True)
class WaterFillingFairness(ShareRule):
    """Make the job that gets least get as much as it can, then the next one, and so on.

    Lexicographic maximum of GPUs_i / q_i * rate_i / proportional_i in rising order; q_i is the job's weight. With
    entities q_i = weight of the entity * weight_i / sum of the weights of its jobs that can still rise (fairness), or
    the entity's weight for its first such job and 0 for the others (fifo). With `hold=all` no job rises twice: what
    jobs have beyond the level of the program in which they rose is chance.
    """

    entities: str = field(
        default="",
        metadata=about("tenants that share by weight: 'name:weight' or 'name:weight:fifo', separated by commas"),
    )

    hold: str = field(
        default=HOLD[0],
        metadata=about("jobs held after a program: stuck, or all = Gavel without the solver GLPK_MI", choices=HOLD),
    )

    program_compat: bool = field(default=False, metadata=PROGRAM_COMPAT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_program_compat(self.program_compat)
        entities_of(self.entities)

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.programs.water_filling import WaterFilling

        entities = entities_of(self.entities)
        allocator = WaterFilling(self.mode, self.solution, entities, self.program_compat, self.hold == "all")
        return SharePlan(allocator, self.mode == "packed", self.visit, entities=frozenset(entities))


def entities_of(text: str) -> dict[str, tuple[float, str]]:
    """Weight and inner policy of each entity in ``"red:1, blue:2:fifo"``."""
    entities: dict[str, tuple[float, str]] = {}
    for part in (part.strip() for part in text.split(",") if part.strip()):
        name, _, rest = part.partition(":")
        weight, _, inner = rest.partition(":")
        try:
            value = float(weight)
        except ValueError:
            value = 0.0
        inner = inner or INNER[0]
        if not name or not 0 < value < float("inf") or inner not in INNER or name in entities:
            expected = "name:weight or name:weight:fifo, each name once and each weight above 0"
            raise PolicyError("policy max_min_fairness_water_filling, parameter entities", repr(part), expected)
        entities[name] = (value, inner)
    return entities
