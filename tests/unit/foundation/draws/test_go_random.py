"""The generator of Go's math/rand: the numbers here are the output of programs in Go 1.19."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fastsim.errors import InputError
from fastsim.foundation.draws.go_random import DRAWN, GoRandom, drawn_by

LOW_63 = 2**63 - 1
RECORDED = {
    0: (8717895732742165505, 2259404117704393152, 1, 506, 789387515, [5, 1, 2, 4, 0, 3, 6]),
    1: (5577006791947779410, 8674665223082153551, 7, 59, 911902081, [4, 1, 5, 0, 3, 2, 6]),
    42: (12663951391086054483, 608747136543856411, 4, 750, 94099423, [3, 5, 2, 6, 0, 1, 4]),
    -1: (12868334305193165484, 550171362161912239, 0, 76, 671732346, [4, 2, 6, 1, 5, 3, 0]),
    7601: (582713639038125700, 5192052087967384457, 3, 475, 36027389, [6, 4, 1, 5, 0, 3, 2]),
    2**31 - 1: (8717895732742165505, 2259404117704393152, 1, 506, 789387515, [5, 1, 2, 4, 0, 3, 6]),
    2**31: (5577006791947779410, 8674665223082153551, 7, 59, 911902081, [4, 1, 5, 0, 3, 2, 6]),
    2**40: (14693609398577170170, 6322525149314491254, 1, 73, 591952038, [5, 3, 6, 0, 1, 4, 2]),
    -(2**50): (16478848382715873053, 7671289084497459999, 1, 139, 572199448, [0, 1, 4, 2, 6, 3, 5]),
}
"""By seed: Uint64, Int63, Int31n(8), Int31n(1000), Intn(1<<30 + 1), Perm(7)."""
BOUNDS = {
    1: (0, 0, 0, 0, 9972544236775916157),
    2: (1, 0, 0, 1, 9972544236775916157),
    7: (0, 3, 3, 5, 9972544236775916157),
    1000: (901, 960, 742, 989, 9972544236775916157),
    2**30: (7831901, 217327960, 48474918, 515536165, 9972544236775916157),
    2**30 + 1: (7831901, 217327960, 174430245, 769043417, 12718071272683030654),
    1_500_000_000: (7831901, 217327960, 1122216742, 174430245, 15403285281996745400),
    2**31 - 1: (7831901, 217327960, 1122216742, 1589277989, 9972544236775916157),
}
"""By bound: four times Intn of seed 9, then Uint64, which tells how many words were drawn."""
SHUFFLED = {1: (12242, 5367, 14294, 15973549704396, 3062621638440017924, 39_999),
            3: (32295, 29235, 23219, 16045056734324, 2134010090721286144, 40_001)}  # fmt: skip
"""By seed, of 0 to 39,999 after Shuffle: three items, their sum times place, Uint64; words, two of them drawn again."""


@pytest.mark.parametrize("seed", RECORDED)
def test_numbers_are_those_of_go(seed: int) -> None:
    draws = GoRandom(seed)
    found = draws.word(), draws.word() & LOW_63, draws.below(8), draws.below(1000), draws.below(2**30 + 1)
    assert (*found, draws.permutation(7)) == RECORDED[seed]


def test_a_bound_that_does_not_divide_2_to_the_31_draws_again() -> None:
    for bound, recorded in BOUNDS.items():
        draws = GoRandom(9)
        assert (*(draws.below(bound) for _ in range(4)), draws.word()) == recorded


def test_the_words_go_on_for_ever_and_begin_anywhere() -> None:
    draws = GoRandom(3)
    words = [draws.word() for _ in range(2001)]
    assert words[-2:] == [7035135371443198620, 17425965546815731585] and draws.used == 2001
    for used in (1, 272, 273, 274, 546, 607, 1999):
        behind = GoRandom(3, used)
        assert behind.word() == words[used] and behind.used == used + 1


@pytest.mark.parametrize("seed", SHUFFLED)
def test_a_shuffle_is_that_of_go(seed: int) -> None:
    draws, items = GoRandom(seed), np.arange(40_000)
    draws.shuffle(items)
    used = draws.used
    total = int((np.arange(40_000) * items).sum())
    assert (*items[:3].tolist(), total, draws.word(), used) == SHUFFLED[seed]


def test_nothing_to_shuffle_draws_nothing() -> None:
    draws = GoRandom(3)
    for items in ([], [7]):
        draws.shuffle(np.array(items, np.int64))
    assert draws.used == 0 and draws.permutation(0) == []


def test_a_run_goes_on_where_the_pods_of_its_seed_ended() -> None:
    pods = SimpleNamespace(metadata={DRAWN: "-4:600"})
    assert drawn_by(pods) == (-4, 600) and drawn_by(SimpleNamespace(metadata={})) is None
    assert GoRandom.of_run(-4, pods).word() == GoRandom(-4, 600).word()
    for after in (None, pods, SimpleNamespace(metadata={})):
        assert GoRandom.of_run(4, after).word() == GoRandom(4, 1).word()


@pytest.mark.parametrize("noted", ["5", "5:-1", "five:5", f"5:{10**9}", "5:4\n"])
def test_words_that_no_run_draws_are_refused(noted: str) -> None:
    with pytest.raises(InputError, match=r"fastsim\.drawn: found .* expected the seed of its draws and their number"):
        drawn_by(SimpleNamespace(metadata={DRAWN: noted}))


def shuffled_word_by_word(draws: GoRandom, items: list[int]) -> None:
    """Exchange every item from the last to the second, a word at a time."""
    for last in range(len(items) - 1, 0, -1):
        bound = last + 1
        product = (draws.word() >> 31 & 0xFFFFFFFF) * bound
        while product & 0xFFFFFFFF < bound and product & 0xFFFFFFFF < 2**32 % bound:
            product = (draws.word() >> 31 & 0xFFFFFFFF) * bound
        other = product >> 32
        items[last], items[other] = items[other], items[last]


@pytest.mark.parametrize("count", [0, 1, 2, 273, 10_609, 60_000, 150_000])
def test_many_words_at_once_exchange_what_word_by_word_does(count: int) -> None:
    for seed in range(6 if count < 100_000 else 2):
        one, other, draws, single = np.arange(count), list(range(count)), GoRandom(seed), GoRandom(seed)
        draws.shuffle(one)
        shuffled_word_by_word(single, other)
        assert one.tolist() == other and draws.used == single.used and draws.word() == single.word()


@pytest.mark.parametrize("most", [3, 1000, 2**30 + 1, 1_500_000_000])
def test_numbers_ahead_are_those_of_single_draws(most: int) -> None:
    for seed in range(5):
        ahead, single = GoRandom(seed), GoRandom(seed)
        for drawn in range(1, 40):
            bounds = np.arange(most, max(most - 50, 0), -1)
            numbers = ahead.look_ahead(bounds)[:drawn].tolist()
            ahead.skip(len(numbers))
            assert numbers == [single.below(int(bound)) for bound in bounds[: len(numbers)]] and numbers
            assert ahead.used == single.used
        assert ahead.below(7) == single.below(7) and ahead.word() == single.word()
