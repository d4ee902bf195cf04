"""Rates of jobs in a round, true and estimated, in plain Python: twin of ``candidates`` and ``share_loop``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fastsim.engine.rounds.options import RoundOptions
from fastsim.performance.oracle import Oracle


def true_rates(oracle: Oracle, kinds: Sequence[int], model: int) -> list[float]:
    """Steps/s of each member of a candidate, one job or two, on a GPU model; 0 where nothing is known."""
    if len(kinds) == 1:
        return [float(oracle.alone__kg[kinds[0], model])]
    shared = [float(oracle.shared__kkg[a, b, model]) for a, b in (kinds, kinds[::-1])]
    return [0.0 if math.isnan(rate) else rate for rate in shared]


def pair_is_hopeful(oracle: Oracle, kinds: Sequence[int], estimated_kinds: Sequence[int], model: int) -> bool:
    """Whether both jobs have estimated rates above 0: those of their estimated kinds, and of each of them alone."""
    alone = [
        oracle.alone__kg[kind, model]
        for kind, estimated_kind in zip(kinds, estimated_kinds, strict=True)
        if kind != estimated_kind
    ]
    return all(rate > 0 for rate in (*true_rates(oracle, estimated_kinds, model), *alone))


def round_of(
    rate: float, steps_left: float, start_s: float, delay_s: float, options: RoundOptions
) -> tuple[float, float]:
    """Steps of a job in a round that begins at ``start_s``, work after ``delay_s``, and when they are done, seconds."""
    end_s = start_s + options.round_s
    if rate <= 0:  # a guess that was wrong costs a round
        return 0.0, end_s
    steps = rate * (options.round_s - delay_s)
    if options.quirk("whole_steps"):
        steps = min(float(int(steps)), steps_left)
        return steps, start_s + delay_s + steps / rate
    if steps < steps_left:
        return steps, end_s  # exactly: a quotient may be rounded to less, and who arrives then would miss the round
    return steps_left, min(start_s + delay_s + steps_left / rate, end_s)
