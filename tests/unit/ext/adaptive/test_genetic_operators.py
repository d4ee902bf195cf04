"""The compiled operators make the same children as the formulas, draw for draw."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from fastsim_ext.adaptive.genetic_operators import GeneticOperators
from tests.reference.rounds import genetic_operators as by_hand

States = npt.NDArray[np.int8]
sizes = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 9))


def both(
    shape: tuple[int, int, int], node_gpus: int, seed: int
) -> tuple[GeneticOperators, np.random.RandomState, States]:
    """Both spellings on one stream, and drawn states."""
    random = np.random.RandomState(seed)
    states = random.randint(0, node_gpus + 1, shape).astype(np.int8)
    _, key, used, *_ = random.get_state()
    return GeneticOperators(shape[1], shape[2], node_gpus, np.array(key, np.uint32), int(used)), random, states


def goes_on_alike(breeder: GeneticOperators, random: np.random.RandomState) -> bool:
    """Whether both have used as many numbers."""
    _, key, used, *_ = random.get_state()
    theirs, gone = breeder.stream_state()
    return np.array_equal(theirs, np.array(key, np.uint32)) and gone == int(used)


@given(sizes, st.integers(1, 8), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_crossover(shape: tuple[int, int, int], node_gpus: int, seed: int) -> None:
    breeder, random, states = both(shape, node_gpus, seed)
    first, second = states, states[::-1].copy()
    expected = by_hand.crossed(random, first, second)
    breeder.crossed(first, second)
    assert np.array_equal(first, expected[0]) and np.array_equal(second, expected[1])
    assert goes_on_alike(breeder, random)


@given(sizes, st.integers(1, 8), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_mutation(shape: tuple[int, int, int], node_gpus: int, seed: int) -> None:
    breeder, random, states = both(shape, node_gpus, seed)
    base = states[0].copy()
    expected = by_hand.mutated(random, states, base, node_gpus)
    breeder.mutated(states, base)
    assert np.array_equal(states, expected)
    assert goes_on_alike(breeder, random)


@given(sizes, st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60)
def test_repair(shape: tuple[int, int, int], node_gpus: int, seed: int, apart: bool) -> None:
    breeder, random, states = both(shape, node_gpus, seed)
    most = random.randint(1, 2 * node_gpus + 1, shape[1]).astype(np.int32)
    least = random.randint(0, 2, shape[1]).astype(np.int32)
    _, key, used, *_ = random.get_state()
    breeder = GeneticOperators(shape[1], shape[2], node_gpus, np.array(key, np.uint32), int(used))
    expected = by_hand.repaired(random, states, most, least, node_gpus, apart)
    breeder.repaired(states, most, least, apart)
    assert np.array_equal(states, expected)
    assert goes_on_alike(breeder, random)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b, s: b.crossed(s, s[:1].copy()),
        lambda b, s: b.mutated(s[:, :1].copy(), s[0]),
        lambda b, s: b.mutated(s, s[0, :1]),
        lambda b, s: b.repaired(s, np.ones(1, np.int32), np.ones(1, np.int32)),
    ],
)
def test_other_shapes_are_refused(wrong: Callable[[GeneticOperators, States], None]) -> None:
    breeder, _, states = both((3, 2, 4), 4, 1)
    with pytest.raises(ValueError, match=r"shape|couples|bound"):
        wrong(breeder, states)
