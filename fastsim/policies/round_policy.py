"""Base classes of policies for jobs: checked parameters, a text form and the publication."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about

GAVEL = """@inproceedings{narayanan2020gavel,
  title = {Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads},
  author = {Narayanan, Deepak and Santhanam, Keshav and Kazhamiaka, Fiodar and Phanishayee, Amar and Zaharia, Matei},
  booktitle = {OSDI},
  year = {2020}
}"""

MODES = ("base", "perf", "packed")
SOLUTIONS = ("centered", "vertex")
# Parameters of every program.
MODE = about("base: all GPU models count as equally fast; perf: measured rates; packed: pairs may share", choices=MODES)
SOLUTION = about("which optimum is taken where there are many: inside the optimal face or a corner", choices=SOLUTIONS)
PROGRAM_COMPAT = about("of many optima the one where the published program ends; base and perf, centered (compat)")


@dataclass(frozen=True)
class RoundRule:
    """A policy for jobs in rounds; its parameters are checked on construction."""

    policy_name: ClassVar[str] = ""
    citation: ClassVar[str] = GAVEL

    def __post_init__(self) -> None:
        for item in fields(self):
            choices, value = item.metadata.get("choices", ()), getattr(self, item.name)
            where = f"policy {self.policy_name}, parameter {item.name}"
            if choices and value not in choices:
                raise PolicyError(where, repr(value), f"one of {', '.join(choices)}")
            if isinstance(item.default, bool) and not isinstance(value, bool):
                do = f"write {item.name}={value.title()}" if value in ("true", "false") else ""
                raise PolicyError(where, repr(value), "True or False", do)

    def __str__(self) -> str:
        changed = [
            f"{item.name}={getattr(self, item.name)!r}".replace("'", "")
            if item.metadata.get("choices")
            else f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if getattr(self, item.name) != item.default
        ]
        name = self.policy_name or type(self).__name__  # a class that is not registered has no other
        return f"{name}({', '.join(changed)})" if changed else name

    def where(self, parameter: str) -> str:
        """Place of an error about this parameter, as errors name it."""
        return f"policy {self.policy_name}, parameter {parameter}"


@dataclass(frozen=True)
class ShareRule(RoundRule):
    """A policy that is one linear program, or several."""

    engine: ClassVar[str] = "shares"

    mode: str = field(default="perf", metadata=MODE)
    solution: str = field(default="centered", metadata=SOLUTION)

    @property
    def visit(self) -> str:
        """Order in which GPU models are filled: shuffled in mode ``base``, which must not favour a model."""
        return "shuffled" if self.mode == "base" else "fastest"

    def check_program_compat(self, compat: bool) -> None:
        """Raise :class:`PolicyError` if the published program is asked for where there is none."""
        if compat and (self.mode == "packed" or self.solution != "centered"):
            found = f"True with mode={self.mode}, solution={self.solution}"
            raise PolicyError(self.where("program_compat"), found, "True with mode=base or perf, solution=centered")
