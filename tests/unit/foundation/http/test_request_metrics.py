"""Requests are counted by verb and result, and their seconds in classes, as Prometheus adds them up."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.foundation.http.replies import Reply, Request
from fastsim.foundation.http.request_metrics import BOUNDS_S, Gauge, RequestMetrics

WAYS = {"fast": 0.004, "at a bound": 0.25, "slow": 99.0}


def failing() -> float:
    raise InputError("nodes", "nothing", "a cluster")


def played(*took_s: float, bad: int = 0) -> RequestMetrics:
    """Metrics after requests that took these seconds, and ``bad`` others that failed."""
    now = [0.0]
    metrics = RequestMetrics("own", clock=lambda: now[0])

    def route(request: Request) -> Reply:
        now[0] += float(request.body)
        return Reply(request.body)

    measured = metrics.measured("filter", route, lambda reply: reply.body == b"1.5")
    for one in took_s:
        measured(Request({}, body=repr(one).encode()))
    for _ in range(bad):
        with pytest.raises(ValueError, match="could not convert"):
            measured(Request({}, body=b"no number"))
    return metrics


def test_requests_are_counted_by_result() -> None:
    lines = played(0.004, 1.5, 1.5, bad=3).text().splitlines()
    assert 'own_requests_total{verb="filter",result="ok"} 1' in lines
    assert 'own_requests_total{verb="filter",result="error"} 5' in lines


@pytest.mark.parametrize("way", WAYS)
def test_a_class_has_all_that_took_no_longer(way: str) -> None:
    took_s = WAYS[way]
    lines = played(took_s, took_s).text().splitlines()
    for bound in BOUNDS_S:
        assert f'own_request_seconds_bucket{{verb="filter",le="{bound!r}"}} {2 * (took_s <= bound)}' in lines
    assert 'own_request_seconds_bucket{verb="filter",le="+Inf"} 2' in lines
    assert f'own_request_seconds_sum{{verb="filter"}} {took_s + took_s!r}' in lines
    assert 'own_request_seconds_count{verb="filter"} 2' in lines


def test_each_family_has_its_head_once_and_a_gauge_that_fails_is_left_out() -> None:
    metrics = played(0.004)
    metrics.measured("prioritize", lambda _: Reply(b""))(Request({}))
    text = metrics.text([Gauge("nodes", "Nodes.", lambda: 3), Gauge("pods", "Pods.", failing)])
    heads = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert heads == [
        "# TYPE own_requests_total counter",
        "# TYPE own_request_seconds histogram",
        "# TYPE own_nodes gauge",
    ]
    assert "own_nodes 3\n" in text and "pods" not in text and text.endswith("\n")
