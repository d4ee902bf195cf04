"""Water filling by its definition in whole fractions: programs by the simplex method with Bland's rule, no rounding.

Jobs that can still rise do so at the speeds of their claims until one of them is full. A job is full if it cannot be
faster in any allocation in which no job is slower than it is now. Claims are then those of the jobs that are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

Row = list[Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


def exact_levels(
    rate__jg: Sequence[Sequence[Fraction]], gpus__g: Sequence[int], weight__j: Sequence[Fraction],
    entity__j: Sequence[str], entities: Mapping[str, tuple[Fraction, str]],
) -> Row:  # fmt: skip
    """Rate of each job on one GPU when all are full; ``rate__jg`` are those alone on each model."""
    jobs, models = range(len(rate__jg)), len(gpus__g)
    speed: list[Row] = [[ZERO] * (len(rate__jg) * models) for _ in jobs]
    limits: list[tuple[Row, Fraction]] = []
    for job in jobs:
        speed[job][job * models : (job + 1) * models] = list(rate__jg[job])
        limits.append(([ONE if cell // models == job else ZERO for cell in range(len(speed[job]))], ONE))
    for model, gpus in enumerate(gpus__g):
        limits.append(([ONE if cell % models == model else ZERO for cell in range(len(speed[0]))], Fraction(gpus)))
    level, full = [ZERO] * len(speed), [not any(rates) for rates in rate__jg]
    while not all(full):
        rise = exact_claims(full, weight__j, entity__j, entities)
        rows = [([*(-cell for cell in speed[job]), rise[job]], -level[job]) for job in jobs]
        rows += [([*cells, ZERO], most) for cells, most in limits]
        by = optimum([ZERO] * len(speed[0]) + [ONE], rows)[-1]
        level = [level[job] + by * rise[job] for job in jobs]
        left = [job for job in jobs if rise[job]]
        rows = [([-cell for cell in speed[job]], -level[job]) for job in jobs] + limits
        while left:  # if one of them can rise, so can their sum
            shares = optimum([sum(cells) for cells in zip(*(speed[job] for job in left), strict=True)], rows)
            still = [job for job in left if product(speed[job], shares) == level[job]]
            if len(still) == len(left):
                break
            left = still
        for job in left:
            full[job] = True
    return level


def exact_claims(
    full: Sequence[bool], weight__j: Sequence[Fraction], entity__j: Sequence[str],
    entities: Mapping[str, tuple[Fraction, str]],
) -> Row:  # fmt: skip
    """The part of its entity's weight by which each job that is not full rises; with fifo only the first one does."""
    claims = [ZERO] * len(full)
    for name, (share, inner) in entities.items():
        left = [job for job, owner in enumerate(entity__j) if owner == name and not full[job]]
        left = left[:1] if inner == "fifo" else left
        for job in left:
            claims[job] = share * weight__j[job] / sum(weight__j[other] for other in left)
    return claims


def product(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """Sum of the products."""
    return sum((a * b for a, b in zip(first, second, strict=True) if a and b), ZERO)


def optimum(gain: Row, rows: Sequence[tuple[Row, Fraction]]) -> Row:
    """The x >= 0 with the largest ``gain`` * x under ``cells`` * x <= ``most`` in every row."""
    width, height = len(gain), len(rows)
    table = []
    for at, (cells, most) in enumerate(rows):
        slack = [ONE if at == other else ZERO for other in range(height)]
        sign = -ONE if most < 0 else ONE
        artificial = ONE if most < 0 else ZERO
        own = [artificial if at == other else ZERO for other in range(height)]
        table.append([sign * cell for cell in [*cells, *slack]] + own + [sign * most])
    basis = [width + height + at if most < 0 else width + at for at, (_, most) in enumerate(rows)]
    missing = [ZERO] * (width + height) + [-ONE] * height
    climbed(table, basis, missing, width + 2 * height)
    for at, column in enumerate(basis):
        if column >= width + height:  # at 0, and it must not rise again
            assert not table[at][-1]
            exchange(table, basis, at, next(other for other in range(width + height) if table[at][other]))
    climbed(table, basis, [*gain, *[ZERO] * (2 * height)], width + height)
    found = [ZERO] * width
    for line, column in zip(table, basis, strict=True):
        if column < width:
            found[column] = line[-1]
    return found


def climbed(table: list[Row], basis: list[int], gain: Row, columns: int) -> None:
    """Exchange columns of the basis, of those with the lowest numbers, until no exchange gains."""
    reduced = [*gain, ZERO]
    for line, column in zip(table, basis, strict=True):
        reduced = less(reduced, line, reduced[column])
    while True:
        entering = next((column for column in range(columns) if reduced[column] > 0), None)
        if entering is None:
            return
        leaving = min(
            (at for at, line in enumerate(table) if line[entering] > 0),
            key=lambda at: (table[at][-1] / table[at][entering], basis[at]),
        )
        exchange(table, basis, leaving, entering)
        reduced = less(reduced, table[leaving], reduced[entering])


def exchange(table: list[Row], basis: list[int], leaving: int, entering: int) -> None:
    """Put a column into the basis, in the place of that of a row."""
    table[leaving] = [cell / table[leaving][entering] if cell else cell for cell in table[leaving]]
    for at, line in enumerate(table):
        if at != leaving:
            table[at] = less(line, table[leaving], line[entering])
    basis[leaving] = entering


def less(line: Row, pivot: Row, times: Fraction) -> Row:
    """A row without so many times the other one."""
    return [cell - times * other if other else cell for cell, other in zip(line, pivot, strict=True)] if times else line
