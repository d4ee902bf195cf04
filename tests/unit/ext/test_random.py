"""Numbers are those of numpy's RandomState."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim_ext.random import drawn_as_numpy


@pytest.mark.parametrize("most", [1, 2, 4, 7, 1000, 9_999_999])
@pytest.mark.parametrize("skipped", [0, 1, 623, 624, 1300])
def test_numbers_are_those_of_numpy(most: int, skipped: int) -> None:
    theirs = np.random.RandomState(seed=skipped + most)
    theirs.randint(0, 2**32, size=skipped, dtype=np.uint32)
    whole, parts = drawn_as_numpy(skipped + most, most, 700, skipped)
    assert whole == theirs.randint(0, most + 1, size=700).tolist()
    assert parts == theirs.random_sample(700).tolist()
