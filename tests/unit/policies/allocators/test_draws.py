"""A stream of draws that went through JSON goes on where it stopped."""

from __future__ import annotations

import json
from random import Random

from fastsim.policies.allocators.draws import kept_draws, restored_draws


def test_the_next_draws_are_the_same() -> None:
    stream = Random(5)
    stream.gauss(0, 1)  # leaves a spare number behind
    again = restored_draws(json.loads(json.dumps(kept_draws(stream))))
    assert [again.random(), again.gauss(0, 1)] == [stream.random(), stream.gauss(0, 1)]
    assert again.sample(range(100), 2) == stream.sample(range(100), 2)
