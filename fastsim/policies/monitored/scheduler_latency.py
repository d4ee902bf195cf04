"""How long a scheduler takes for what it does, seconds."""

from __future__ import annotations

from dataclasses import dataclass

from fastsim.errors import PolicyError

FAILING_BINDS = (8,)
"""Attempts to bind, of the first 31, for which the random priority is 0, so that no node is found, in every log."""


@dataclass(frozen=True)
class Pace:
    """A pass over the queue takes `pass_s`, and a placement makes the scheduler sleep for `placed_s` more.

    With ``api_pace`` every running pod is looked up with a request of its own, of which `requests_per_s` are allowed,
    so that a pass with many of them takes longer. With ``zero_draw`` the attempts of `FAILING_BINDS` fail.
    """

    pass_s: float = 0.5
    placed_s: float = 5.0
    requests_per_s: float = 5.0
    api_pace: bool = False
    zero_draw: bool = False

    def __post_init__(self) -> None:
        for name in ("pass_s", "placed_s"):
            if not getattr(self, name) >= 0:
                raise PolicyError(f"pace.{name}", getattr(self, name), "0 s or more")
        if not self.requests_per_s > 0:
            raise PolicyError("pace.requests_per_s", self.requests_per_s, "more than 0")

    def pass_length_s(self, running: int) -> float:
        """Seconds of a pass while so many pods run."""
        return max(self.pass_s, running / self.requests_per_s) if self.api_pace else self.pass_s

    def binds(self, attempt: int) -> bool:
        """Whether the `attempt`-th binding of a run, from 1, finds its node."""
        return not (self.zero_draw and attempt in FAILING_BINDS)
