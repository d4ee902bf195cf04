"""One thread for linear algebra, and as many as before afterwards."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fastsim.one_thread import PREFIX, _library, one_thread


def test_results_are_the_same() -> None:
    matrix = np.eye(3) + 0.1
    with one_thread():
        inside = linalg.cholesky(matrix)
    assert np.array_equal(inside, linalg.cholesky(matrix))


def test_threads_come_back() -> None:
    library = _library()
    if library is None:
        return  # SciPy is linked with another library here
    count = getattr(library, f"{PREFIX}_get_num_threads")
    before = count()
    with one_thread():
        assert count() == 1
    assert count() == before
