"""A scoring function of your own, through the same socket as the published policies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, cast

from fastsim.engine.online.plan import NORMALISERS, ScoreTerm
from fastsim.errors import PolicyError, kind_of, short
from fastsim.policies.online.imported_scorer import failed_import, imported_scorer
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import about, policy

if TYPE_CHECKING:
    from fastsim.engine.online.plan import Scorer

EXPECTED = "a function or its place as 'module:function'"
WHERE = "policy python, parameter scorer"
OBJECT = "objects with a method __call__(nodes, pod) are functions, too"
PLACE = re.compile(r"[^:\s]+:[^:\s]+")


@policy("python")
@dataclass(frozen=True)
class PythonScorer(Summand):
    """Let a Python function score every node, one vectorised call for each pod.

    score = scorer(nodes, pod), an array with one number for each node, larger is better; floats are rounded to the
    nearest whole number (halves to the even one), so scale them until one point is a difference. ``normalise``
    spreads it over 0..100 so that it can be mixed: ``0.8 * FGD() + 0.2 * PythonScorer(most_memory)``.
    """

    citation: ClassVar[str] = ""

    scorer: Callable[..., object] | str = field(
        default="", metadata=about("the function, or where to import it from, as 'module:function'")
    )
    normalise: str = field(
        default="none",
        metadata=about(
            "none = points as they are; min_max_0 and min_max_100 = from worst 0 to best 100, "
            "0 or 100 everywhere if all are equal",
            choices=NORMALISERS,
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.scorer, type):
            raise PolicyError(WHERE, kind_of(self.scorer), f"{EXPECTED}, no class", OBJECT)
        if not callable(self.scorer) and not (isinstance(self.scorer, str) and PLACE.fullmatch(self.scorer)):
            raise PolicyError(WHERE, short(self.scorer), EXPECTED)

    @property
    def imports_code(self) -> bool:
        """Whether the function has to be imported from a module that its text names."""
        return not callable(self.scorer)

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1; only now is a module imported, so a text alone runs nothing."""
        scorer = self.scorer if callable(self.scorer) else self._imported()
        return ScoreTerm("python", normalise=self.normalise, scorer=cast("Scorer", scorer))

    def kernel(self) -> str:
        """The name of the socket for functions; no import is needed for it."""
        return "python"

    def _imported(self) -> object:
        module, _, name = str(self.scorer).partition(":")
        try:
            value = imported_scorer(str(self.scorer))
        except (Exception, SystemExit) as error:  # the module is the user's: importing it may fail in any way
            raise PolicyError(WHERE, f"{self.scorer!r} ({failed_import(module, error)})", EXPECTED) from None
        if isinstance(value, type):
            raise PolicyError(WHERE, f"{self.scorer!r}, which is {kind_of(value)}", f"{EXPECTED}, no class", OBJECT)
        if not callable(value):
            raise PolicyError(WHERE, f"{self.scorer!r}, which is {kind_of(value)}", EXPECTED, f"is {name} a function?")
        return value

    def __str__(self) -> str:
        if not callable(self.scorer):
            return super().__str__().replace(f"scorer={self.scorer}", f"scorer={self.scorer!r}")
        place = f"{getattr(self.scorer, '__module__', '?')}:{getattr(self.scorer, '__qualname__', '?')}"
        before = [f"gpu_pick={self.gpu_pick}"] if self.gpu_pick else []
        after = [f"normalise={self.normalise}"] if self.normalise != "none" else []
        return f"python({', '.join([*before, f'scorer={place!r}', *after])})"
