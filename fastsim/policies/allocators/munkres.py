"""The assignment method of Munkres (1957), which decides among matchings of equal cost as SciPy did before 1.4.

After its smallest cost is subtracted from every row, zeros are possible matches. A starred zero is one of the matching,
a primed zero could replace the starred one of its row. Zeros are looked for row by row, each row from the left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastsim.engine.shares.plan import Floats, Ints

NONE = -1
Flags = npt.NDArray[np.bool_]


def munkres_matching(cost: Floats) -> tuple[Ints, Ints]:
    """Rows and columns of a matching with the smallest sum of costs, rows rising."""
    if cost.shape[0] > cost.shape[1]:
        columns, rows = munkres_matching(np.ascontiguousarray(cost.T))
        order = np.argsort(rows)
        return rows[order], columns[order]
    left = cost - cost.min(axis=1, keepdims=True)
    star = _first_stars(left == 0)
    for _ in range(int((star == NONE).sum())):
        _one_star_more(left, star)
    return np.arange(len(star)), star


def _first_stars(zero: Flags) -> Ints:
    """Column of the starred zero of each row: the first zero whose row and column have none yet."""
    star, taken = np.full(len(zero), NONE), np.zeros(zero.shape[1], np.bool_)
    for row in np.flatnonzero(zero.any(axis=1)):
        free = np.flatnonzero(zero[row] & ~taken)
        if len(free):
            star[row] = free[0]
            taken[free[0]] = True
    return star


def _one_star_more(left: Floats, star: Ints) -> None:
    """Prime zeros until one has no starred zero in its row, and lowers the costs of open rows when there is none."""
    open_row, open_column = np.ones(len(star), np.bool_), np.ones(left.shape[1], np.bool_)
    open_column[star[star != NONE]] = False
    prime = np.full(len(star), NONE)
    zero = (left == 0) & open_column
    while True:
        row, column = divmod(int(zero.argmax()), zero.shape[1])
        if not zero[row, column]:
            least = left[open_row].min(axis=0)[open_column].min()
            left[~open_row] += least
            left[:, open_column] -= least
            zero = (left == 0) & open_row[:, None] & open_column
            continue
        prime[row] = column
        if star[row] == NONE:
            _exchange(star, prime, row)
            return
        # The row is closed and the column of its star open again.
        open_row[row], open_column[star[row]] = False, True
        zero[:, star[row]] = (left[:, star[row]] == 0) & open_row
        zero[row] = False


def _exchange(star: Ints, prime: Ints, row: int) -> None:
    """Star the primed zero of the row, and that of the row whose star was in its column, and so on."""
    while row != NONE:
        column = prime[row]
        others = np.flatnonzero(star == column)
        star[row] = column
        row = int(others[0]) if len(others) else NONE
