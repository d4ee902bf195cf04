"""The limit on requests: bursts, waits, and many passes at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.policies.monitored.request_limiter import RequestLimiter


def sent_s(limiter: RequestLimiter, *at_s: float) -> list[float]:
    """When requests are sent that come at these seconds, each after the one before was sent."""
    found: list[float] = []
    for moment in at_s:
        found.append(limiter.sent_s(max([moment, *found[-1:]])))
    return found


def test_a_burst_is_sent_at_once_and_the_rest_at_the_rate() -> None:
    limiter = RequestLimiter(4, 3)
    assert sent_s(limiter, *[10.0] * 5) == [10, 10, 10, 10.25, 10.5]
    assert limiter.is_empty(10.5) and not limiter.is_empty(10.75)


def test_the_bucket_holds_no_more_than_a_burst() -> None:
    limiter = RequestLimiter(4, 3)
    assert sent_s(limiter, *[0.0] * 3, *[100.0] * 4) == [0, 0, 0, 100, 100, 100, 100.25]


def test_without_a_rate_none_waits() -> None:
    limiter = RequestLimiter()
    assert sent_s(limiter, *[1.0] * 100) == [1.0] * 100 and limiter.wait_s(100, 0.0) == 0


@pytest.mark.parametrize(
    ("burst", "requests", "pause_s", "wait_s"),
    [(10, 2, 0.5, 0.0), (10, 3, 0.5, 0.25), (10, 8, 0.5, 1.5), (1, 2, 0.5, 0.25), (1, 2, 9.0, 0.25)],
)
def test_the_wait_after_a_pause(burst: int, requests: int, pause_s: float, wait_s: float) -> None:
    limiter, now_s = RequestLimiter(4, burst), 0.0
    while not limiter.is_empty(now_s):
        now_s = limiter.sent_s(now_s)
    assert limiter.wait_s(requests, pause_s) == wait_s
    assert sent_s(limiter, *[now_s + pause_s] * requests)[-1] == now_s + pause_s + wait_s


@given(st.sampled_from((1, 3, 10)), st.integers(1, 12), st.sampled_from((0.25, 0.5, 4.0)), st.integers(1, 20))
def test_many_passes_at_once_are_as_one_after_another(burst: int, requests: int, pause_s: float, times: int) -> None:
    one, many = RequestLimiter(4, burst), RequestLimiter(4, burst)
    now_s = 0.0
    while not one.is_empty(now_s):
        now_s = one.sent_s(now_s)
        many.sent_s(now_s)
    begin_s, length_s = now_s + pause_s, pause_s + one.wait_s(requests, pause_s)
    for number in range(times):
        sent_s(one, *[begin_s + number * length_s] * requests)
    many.repeat(times, requests)
    after_s = begin_s + times * length_s
    assert sent_s(one, *[after_s] * 12) == sent_s(many, *[after_s] * 12)
