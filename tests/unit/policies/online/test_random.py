"""The random policy: every choice is a function of seed and attempt, worked with plain integers."""

from __future__ import annotations

from collections import Counter

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies import Random
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4

WORD = 2**64


def below(bound: int, seed: int, stream: int, attempt: int) -> int:
    z = (seed * 0x9E3779B97F4A7C15 + stream * 0xBF58476D1CE4E5B9 + attempt * 0x94D049BB133111EB) % WORD
    for _ in range(2):
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
        z ^= z >> 31
    return (z >> 32) * bound >> 32


def decision(count: int, gpus: int, seed: int) -> Decision:
    return Decision(t4(count, gpus), Random().plan(None, None), seed)  # type: ignore[arg-type]


def test_it_looks_at_nothing_and_draws_the_device_too() -> None:
    assert Random().term() == ScoreTerm("random") and Random().own_gpu_pick() == "random"


def test_the_draw_is_among_the_nodes_that_have_room() -> None:
    for seed in (0, 7, 2**64 - 1):
        run = decision(5, 1, seed)
        cls, free = run.pod(), list(range(5))
        for attempt in range(5):
            # The last node left is taken without a draw.
            drawn = free.pop(below(len(free), seed, 1, attempt))
            assert run.placed(cls) == drawn
        assert run.placed(cls) == -1


def test_the_device_has_a_stream_of_its_own() -> None:
    run = decision(1, 4, seed=3)
    run.table.nodes.load(0, 8000, 64, [1000, 300, 600, 1000], {0: 2})
    cls = run.pod(1, 500)
    fitting = [0, 2, 3]
    assert run.select.pick(2, 0, cls) == 1 << fitting[below(3, 3, 2, 0)]
    assert run.placed(cls) == 0  # the next attempt draws again
    assert run.select.attempts == 1


def test_all_nodes_are_about_equally_likely() -> None:
    run = decision(4, 1, seed=11)
    cls, counts = run.pod(), Counter[int]()
    for _ in range(4000):
        slot = run.online.trial(cls)
        counts[run.table.columns["pods"].tolist().index(1)] += 1
        run.online.discard(slot)
    assert all(abs(count - 1000) < 5 * 27.4 for count in counts.values()) and len(counts) == 4  # five sd of a binomial
