"""The ranking of candidates, such as policies, by a figure of their runs, pair by pair of seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastsim.errors import ScenarioError, suggestion
from fastsim.experiments.statistics.intervals import Interval, PairedComparison, check_method, holm, interval, paired

if TYPE_CHECKING:
    import polars as pl

BEST, TIE, WORSE, UNKNOWN, INCOMPLETE, FAILED = "best", "tie", "worse", "cannot tell", "incomplete", "failed"
VERDICTS = {
    BEST: "the best mean, and no failed run if any candidate has none",
    TIE: "within the equivalence bound of the best one, or equal to it in every pair",
    WORSE: "significantly worse than the best one",
    UNKNOWN: "too few or too different pairs for any of these",
    INCOMPLETE: "some of its runs failed, which is not so of the best one",
    FAILED: "none of its runs has a figure",
}
"""Verdicts about a candidate, and when each is given."""
POWER = 0.8
"""Probability with which ``pairs_needed`` tell a difference of the size that was seen."""


@dataclass(frozen=True)
class Method:
    """The method of a comparison: confidence level, kind of intervals, and the seed of its draws.

    ``equivalence`` is the part of the best mean within which a difference counts for nothing; None = no difference is
    too small to count.
    """

    level: float = 0.95
    name: str = "t"
    seed: int = 0
    equivalence: float | None = None

    def __post_init__(self) -> None:
        check_method(self.level, self.name)
        if self.equivalence is not None and not 0 <= self.equivalence < math.inf:
            raise ScenarioError("equivalence", repr(self.equivalence), "a part of the best mean, 0 or more")

    @property
    def drawn(self) -> tuple[float, str, int]:
        """Arguments of :func:`interval` and :func:`paired`."""
        return self.level, self.name, self.seed


OTHER_PAIRS = "pairs= (--pairs) names the column whose values are repetitions, such as workload"
"""Advice for a table without the column of repetitions."""


def winners(
    table: pl.DataFrame, metric: str, *, over: str = "policy", pairs: str | Sequence[str] = "seed",
    by: Sequence[str] = (), higher: bool | None = None, level: float = 0.95, method: str = "t", seed: int = 0,
    equivalence: float | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Candidates (values of ``over``) in the order of their mean ``metric``, the best first, for each case of ``by``.

    The definition of the metric (see `fastsim describe metrics`), or ``higher``, decides which of them is the best.

    ``difference`` is to the best one, over the repetitions (values of ``pairs``) that both have; ``p_value`` is
    corrected for the number of candidates. ``pairs_needed`` is the number of pairs that would show a difference of this
    size (Student's t, four times out of five), null where none would. ``failed`` counts runs without a finite figure,
    which are in no mean; a candidate with failed runs comes after those without. ``verdict`` is one of ``VERDICTS``.
    """
    import polars as pl

    how = Method(level, method, seed, equivalence)
    keys = [pairs] if isinstance(pairs, str) else list(pairs)
    for name in (metric, over, *keys, *by):
        if name not in table.columns:
            do = suggestion(name, table.columns) or (OTHER_PAIRS if name in keys else "")
            raise ScenarioError("winners", f"no column {name!r}", f"columns among {', '.join(table.columns)}", do)
    more = _more_is_better(metric) if higher is None else higher
    finite = pl.when(pl.col(metric).cast(pl.Float64).is_finite()).then(metric)
    table = table.with_columns(finite.alias(metric))
    rows: list[dict[str, Any]] = []
    cases = table.partition_by(list(by), maintain_order=True, as_dict=True) if by else {(): table}
    for case, part in cases.items():
        failed = dict(part.group_by(over, maintain_order=True).agg(pl.col(metric).null_count()).rows())
        ranked = _ranked(
            part=part.drop_nulls(metric), metric=metric, over=over, keys=keys, higher=more, how=how, failed=failed
        )
        rows += [dict(zip(by, case, strict=True)) | row for row in ranked]
    if not any(row["n"] for row in rows):
        raise ScenarioError("winners", f"no finite value of {metric}", "at least one")
    return pl.DataFrame(rows, infer_schema_length=None)


def _more_is_better(metric: str) -> bool:
    from fastsim.engine.audit.metric_definitions import better

    direction = better("summary", metric)
    if not direction:
        where, expected = f"metric {metric!r}", "one of which more or less is better"
        raise ScenarioError(where, "a column of which neither is known to be", expected, "or say --higher or --lower")
    return direction == "more"


def _ranked(
    part: pl.DataFrame, metric: str, over: str, keys: list[str], higher: bool, how: Method, failed: dict[Any, int]
) -> list[dict[str, Any]]:
    """The rows of one case; ``failed`` counts the runs without a figure of each candidate."""
    from fastsim.engine.audit.metric_definitions import possible

    parts = {name[0]: rows for name, rows in part.partition_by(over, maintain_order=True, as_dict=True).items()}
    within = possible("summary", metric)
    means = {name: interval(rows[metric].to_numpy(), *how.drawn, within) for name, rows in parts.items()}
    order = sorted(means, key=lambda name: (failed[name] > 0, -means[name].mean if higher else means[name].mean))
    compared = [_compared(parts[name], parts[order[0]], metric, keys, how) for name in order[1:]]
    p_values = holm([one.p_value for one in compared])
    rows = []
    for rank, name in enumerate(order):
        mean, pair = means[name], compared[rank - 1] if rank else None
        row = {over: name, "rank": rank + 1, "n": mean.n, "mean": mean.mean, "low": mean.low, "high": mean.high}
        row |= {"sd": mean.sd, "difference": None, "difference_low": None, "difference_high": None, "p_value": None}
        row |= {"pairs_needed": None, "verdict": BEST}
        if pair is not None:
            far, p_value = pair.difference, p_values[rank - 1]
            row |= {"difference": far.mean, "difference_low": far.low, "difference_high": far.high, "p_value": p_value}
            verdict = _verdict(far, p_value, means[order[0]].mean, how)
            row |= {"pairs_needed": _pairs_needed(far, how.level), "verdict": verdict}
            if failed[name] and not failed[order[0]]:
                row["verdict"] = INCOMPLETE
        rows.append({key: _null_if_nan(value) for key, value in row.items()} | {"failed": failed[name]})
    return rows + [_without_figures(over, name, count) for name, count in failed.items() if name not in parts]


def _without_figures(over: str, name: Any, failed: int) -> dict[str, Any]:
    """The row of a candidate none of whose runs has a figure."""
    unknown = ("rank", "mean", "low", "high", "sd", "difference", "difference_low", "difference_high", "p_value",
               "pairs_needed")  # fmt: skip
    return {over: name, "n": 0, **dict.fromkeys(unknown), "verdict": FAILED, "failed": failed}


def _compared(mine: pl.DataFrame, best: pl.DataFrame, metric: str, keys: list[str], how: Method) -> PairedComparison:
    """The differences of a candidate from the best one, over the repetitions that both have."""
    both = mine.select(*keys, metric).join(best.select(*keys, metric), on=keys, maintain_order="left")
    if both.is_empty():
        return PairedComparison(Interval(math.nan, math.nan, math.nan, math.nan, 0), math.nan)
    return paired(both[metric].to_numpy(), both[f"{metric}_right"].to_numpy(), *how.drawn)


def _verdict(far: Interval, p_value: float, best: float, how: Method) -> str:
    """The verdict of the pairs about a candidate that is not the best one.

    A difference is within the bound if its interval of two one-sided tests is, so at the level 0.95 that of 0.9.
    """
    if far.n < 2:
        return UNKNOWN
    if far.mean == 0 and far.sd == 0:
        return TIE
    if how.equivalence is not None:
        bound, wide = how.equivalence * abs(best), 1 - 2 * (1 - how.level)
        half = far.sd / math.sqrt(far.n) * _quantile(far.n - 1, (1 + wide) / 2) if wide > 0 else math.inf
        if -bound <= far.mean - half and far.mean + half <= bound:
            return TIE
    return WORSE if p_value <= 1 - how.level else UNKNOWN


def _quantile(freedom: int, part: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, part))


def _pairs_needed(far: Interval, level: float) -> int | None:
    """Pairs with which Student's t shows a difference of this mean and deviation with the probability ``POWER``."""
    from scipy.special import ndtri

    if far.n < 2 or far.mean == 0 or not math.isfinite(far.mean):
        return None
    effect, most = abs(far.mean) / far.sd if far.sd > 0 else math.inf, 1_000_000
    if not effect < math.inf:
        return 2
    edge = float(ndtri((1 + level) / 2))
    return max(2, math.ceil(min(((edge + float(ndtri(POWER))) / effect) ** 2 + edge**2 / 2, most)))


def _null_if_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
