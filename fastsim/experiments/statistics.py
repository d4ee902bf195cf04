"""Means with confidence intervals, paired comparisons across seeds, and the ranking of candidates.

Runs of one seed have the same random inputs under every policy, so policies are compared pair by pair: the differences
vary far less than the figures do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastsim.errors import ScenarioError, suggestion
from fastsim.reports.charts.seed_intervals import half_width

if TYPE_CHECKING:
    import polars as pl

METHODS = ("t", "bootstrap")
DRAWS = 10_000
"""Resamples of a bootstrap, and random assignments of signs where there are too many to try all."""
EXACT = 13
"""Pairs up to which all signs are tried."""

Floats = Sequence[float] | Any


class Interval(NamedTuple):
    """A mean and its confidence interval; NaN where a single value allows none."""

    mean: float
    low: float
    high: float
    sd: float
    n: int


class PairedComparison(NamedTuple):
    """Mean difference of pairs with its interval, and its two-sided p-value."""

    difference: Interval
    p_value: float


def interval(values: Floats, level: float = 0.95, method: str = "t", seed: int = 0) -> Interval:
    """Mean and confidence interval of some values: Student's t, or percentiles of a seeded bootstrap."""
    _check(level, method)
    numbers = np.asarray(values, np.float64)
    count = len(numbers)
    if not count:
        raise ScenarioError("interval", "no values", "at least one")
    mean = float(numbers.mean())
    if count == 1:
        return Interval(mean, math.nan, math.nan, math.nan, 1)
    sd = float(numbers.std(ddof=1))
    if method == "bootstrap":
        picks = np.random.Generator(np.random.PCG64(seed)).integers(0, count, (DRAWS, count))
        low, high = np.quantile(numbers[picks].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
        return Interval(mean, float(low), float(high), sd, count)
    half = float(half_width(numbers, level))
    return Interval(mean, mean - half, mean + half, sd, count)


def paired(ours: Floats, theirs: Floats, level: float = 0.95, method: str = "t", seed: int = 0) -> PairedComparison:
    """Difference of ``ours`` from ``theirs``, pair by pair: Student's t, or a test of random signs (bootstrap)."""
    one, two = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if one.shape != two.shape:
        raise ScenarioError("paired", f"{len(one)} and {len(two)} values", "pairs")
    difference = one - two
    mean = interval(difference, level, method, seed)
    return PairedComparison(mean, _by_signs(difference, seed) if method == "bootstrap" else _by_t(mean))


def _by_t(mean: Interval) -> float:
    """Two-sided p-value of a mean difference."""
    if mean.n < 2:
        return math.nan
    if not mean.sd > 0:
        return 1.0 if mean.mean == 0 else 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(mean.n - 1, -abs(mean.mean) / mean.sd * math.sqrt(mean.n)))


def _by_signs(difference: Any, seed: int) -> float:
    """P-value of a mean difference: the part of all assignments of signs with a mean at least as far from 0."""
    count = len(difference)
    if count < 2:
        return math.nan
    if count <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=count)))
    else:
        random = np.random.Generator(np.random.PCG64(seed)).integers(0, 2, (DRAWS - 1, count)) * 2.0 - 1
        signs = np.vstack([np.ones(count), random])  # the observed signs are one of them
    sums = np.abs(signs @ difference)
    slack = 1e-12 * np.abs(difference).sum()  # sums of the same numbers in another order are the same
    return float((sums >= abs(difference.sum()) - slack).mean())


def holm(p_values: Floats) -> list[float]:
    """P-values corrected for their number (Holm); NaN stays NaN and counts for nothing."""
    numbers = np.asarray(p_values, np.float64)
    corrected = np.full(len(numbers), np.nan)
    order = [int(k) for k in np.argsort(numbers) if not np.isnan(numbers[k])]
    largest = 0.0
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * float(numbers[k])))
        corrected[k] = largest
    return [float(value) for value in corrected]


def winners(
    table: pl.DataFrame, metric: str, *, over: str = "policy", pairs: str | Sequence[str] = "seed",
    by: Sequence[str] = (), higher: bool | None = None, level: float = 0.95, method: str = "t", seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Candidates (values of ``over``) in the order of their mean ``metric``, the best first, for each case of ``by``.

    The definition of the metric (see `fastsim describe metrics`), or ``higher``, decides which of them is the best.

    ``difference`` is to the best one, over the repetitions (values of ``pairs``) that both have; ``p_value`` is
    corrected for the number of candidates. ``failed`` counts runs without a figure, which are in no mean. ``verdict``:
    ``best``; ``tie``, not significantly different from the best; ``worse``; ``unknown`` with less than two pairs;
    ``failed`` where no run has a figure.
    """
    import polars as pl

    _check(level, method)
    keys = [pairs] if isinstance(pairs, str) else list(pairs)
    for name in (metric, over, *keys, *by):
        if name not in table.columns:
            do = suggestion(name, table.columns)
            raise ScenarioError("winners", f"no column {name!r}", f"columns among {', '.join(table.columns)}", do)
    more = _more_is_better(metric) if higher is None else higher
    rows: list[dict[str, Any]] = []
    cases = table.partition_by(list(by), maintain_order=True, as_dict=True) if by else {(): table}
    for case, part in cases.items():
        failed = part.filter(pl.col(metric).is_null()).group_by(over, maintain_order=True).len().rows()
        ranked = _ranked(part.drop_nulls(metric), metric, over, keys, more, (level, method, seed))
        ranked += [_without_figures(over, name) for name, _ in failed if name not in {row[over] for row in ranked}]
        counts = dict(failed)
        rows += [dict(zip(by, case, strict=True)) | row | {"failed": counts.get(row[over], 0)} for row in ranked]
    if not any(row["n"] for row in rows):
        raise ScenarioError("winners", f"no value of {metric}", "at least one")
    return pl.DataFrame(rows, infer_schema_length=None)


def _more_is_better(metric: str) -> bool:
    from fastsim.engine.audit.metric_definitions import better

    direction = better("summary", metric)
    if not direction:
        where, expected = f"metric {metric!r}", "one of which more or less is better"
        raise ScenarioError(where, "a column of which neither is known to be", expected, "or say --higher or --lower")
    return direction == "more"


def _ranked(
    part: pl.DataFrame, metric: str, over: str, keys: list[str], higher: bool, how: tuple[float, str, int]
) -> list[dict[str, Any]]:
    level = how[0]
    parts = {name[0]: rows for name, rows in part.partition_by(over, maintain_order=True, as_dict=True).items()}
    means = {name: interval(rows[metric].to_numpy(), *how) for name, rows in parts.items()}
    order = sorted(means, key=lambda name: -means[name].mean if higher else means[name].mean)
    compared = [_compared(parts[name], parts[order[0]], metric, keys, how) for name in order[1:]]
    p_values = holm([one.p_value for one in compared])
    rows = []
    for rank, name in enumerate(order):
        mean = means[name]
        row = {over: name, "rank": rank + 1, "n": mean.n, "mean": mean.mean, "low": _null_if_nan(mean.low)}
        row |= {"high": _null_if_nan(mean.high), "sd": _null_if_nan(mean.sd)}
        far = compared[rank - 1].difference if rank else None
        p_value = p_values[rank - 1] if rank else math.nan
        row |= {"difference": None if far is None else _null_if_nan(far.mean)}
        row |= {"difference_low": None if far is None else _null_if_nan(far.low)}
        row |= {"difference_high": None if far is None else _null_if_nan(far.high), "p_value": _null_if_nan(p_value)}
        rows.append(row | {"verdict": _verdict(rank, p_value, level)})
    return rows


def _without_figures(over: str, name: Any) -> dict[str, Any]:
    """The row of a candidate none of whose runs has a figure."""
    unknown = ("rank", "mean", "low", "high", "sd", "difference", "difference_low", "difference_high", "p_value")
    return {over: name, "n": 0, **dict.fromkeys(unknown), "verdict": "failed"}


def _compared(
    mine: pl.DataFrame, best: pl.DataFrame, metric: str, keys: list[str], how: tuple[float, str, int]
) -> PairedComparison:
    both = mine.select(*keys, metric).join(best.select(*keys, metric), on=keys, maintain_order="left")
    if both.is_empty():
        return PairedComparison(Interval(math.nan, math.nan, math.nan, math.nan, 0), math.nan)
    return paired(both[metric].to_numpy(), both[f"{metric}_right"].to_numpy(), *how)


def _verdict(rank: int, p_value: float, level: float) -> str:
    if not rank:
        return "best"
    if math.isnan(p_value):
        return "unknown"
    return "worse" if p_value <= 1 - level else "tie"


def _null_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _check(level: float, method: str) -> None:
    if not 0 < level < 1:
        raise ScenarioError("level", repr(level), "a part between 0 and 1")
    if method not in METHODS:
        raise ScenarioError("method", repr(method), f"one of {', '.join(METHODS)}")
