"""Objects of an API server that are listed once and then watched."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import LiveSnapshot
from fastsim.decisions.watched_objects import DEVICE_PATHS, FIRST_PAUSE_S, LATE_S, MOST_PAUSE_S, PATHS, WATCH_S
from fastsim.errors import InputError
from tests.api_server import ApiServer, serving
from tests.unit.decisions.test_kube_extender import node, pod
from tests.unit.telemetry.test_exporter import Clock

EVERY = [*PATHS, *DEVICE_PATHS]


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture(params=[True, False], ids=["in pieces", "until the end"])
def api(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    with serving([node("n1"), pod("a", 1, "n1"), pod("b")], chunked=request.param) as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def live(api: ApiServer, clock: Clock) -> Iterator[LiveSnapshot]:
    with closing(LiveSnapshot(api.url, refresh_s=1e9, clock=clock)) as snapshot:
        yield snapshot


def bound(live: LiveSnapshot) -> list[str]:
    """The pods on nodes."""
    return [row["native_id"] for row in live.state().bound_rows]


def test_a_state_has_every_event_that_came_before_it_was_asked_for(api: ApiServer, live: LiveSnapshot) -> None:
    """However old a snapshot may be: nothing is listed again."""
    first = live.state()
    assert bound(live) == ["ns/a"] and api.lists == EVERY and api.watches == EVERY
    assert live.state() is first
    api.put(pod("b", 1, "n1"))
    assert sorted(bound(live)) == ["ns/a", "ns/b"] and live.state().number == 1
    api.put(node("n0"))
    assert live.state().positions == {"n0": 0, "n1": 1}, "the order of a list"
    api.remove(pod("a", 1, "n1"))
    assert bound(live) == ["ns/b"] and api.lists == EVERY and api.watches == EVERY


def test_a_decision_knows_the_pod_that_was_bound_before_it(api: ApiServer, live: LiveSnapshot) -> None:
    extender = Extender(live, "best_fit")
    arguments = {"Pod": pod("p", 2), "NodeNames": ["n1", "n2"]}
    assert extender.filter(arguments)["NodeNames"] == []
    api.put(node("n2"))
    assert extender.filter(arguments)["NodeNames"] == ["n2"]
    api.put(pod("c", 1, "n2"))
    assert extender.filter(arguments)["NodeNames"] == []
    assert [item["Score"] for item in extender.prioritize(arguments)] == [0, 0]


def test_a_bookmark_changes_nothing(api: ApiServer, live: LiveSnapshot) -> None:
    first = live.state()
    api.bookmark()
    assert live.state() is first


def test_the_heartbeat_of_a_node_changes_nothing(api: ApiServer, live: LiveSnapshot) -> None:
    def beating(time: str, ready: str = "True") -> dict[str, Any]:
        made = node("n1")
        made["status"]["conditions"] = [{"type": "Ready", "status": ready, "lastHeartbeatTime": time}]
        return made

    api.put(beating("2026-01-01T00:00:00Z"))
    first = live.state()
    api.put(beating("2026-01-01T00:05:00Z"))
    assert live.state() is first
    api.put(beating("2026-01-01T00:05:00Z", "False"))
    assert live.state() is not first


def test_a_watch_that_the_server_ends_goes_on_from_its_last_event(api: ApiServer, live: LiveSnapshot) -> None:
    live.state()
    api.put(pod("c", 1, "n1"))
    live.state()
    api.bookmark()
    live.state()
    api.cut(orderly=True)
    api.put(pod("d", 1, "n1"))
    assert "ns/d" in eventually(live, "ns/d") and api.lists == EVERY and len(api.watches) > len(EVERY)


def eventually(live: LiveSnapshot, name: str) -> list[str]:
    """The pods on nodes once this one is among them: an event may be sent after its watch has begun."""
    for _ in range(200):
        if name in (found := bound(live)):
            return found
        threading.Event().wait(0.01)
    return bound(live)


@pytest.mark.parametrize("code", [410, 500])
def test_objects_are_listed_again_after_an_error_of_the_watch(api: ApiServer, live: LiveSnapshot, code: int) -> None:
    live.state()
    api.put(pod("c", 1, "n1"))
    live.state()
    api.objects.clear()
    api.objects["Node", "/n7"] = node("n7")
    api.fail_watches(code)
    assert list(live.state().positions) == ["n7"] and bound(live) == []
    assert sorted(api.lists) == sorted(2 * EVERY)


def test_objects_are_listed_again_where_a_watch_cannot_go_on(api: ApiServer, live: LiveSnapshot) -> None:
    live.state()
    api.bookmark()
    live.state()
    api.forget()
    api.objects["Pod", "ns/d"] = pod("d", 1, "n1")
    api.cut(orderly=True)
    assert "ns/d" in eventually(live, "ns/d") and sorted(api.lists) == sorted(2 * EVERY)


def test_objects_are_listed_again_after_a_connection_that_was_cut(api: ApiServer, live: LiveSnapshot) -> None:
    live.state()
    api.bookmark()
    live.state()
    api.cut(orderly=False)
    api.put(pod("e", 1, "n1"))
    assert "ns/e" in eventually(live, "ns/e")
    api.put(pod("f", 1, "n1"))
    assert "ns/f" in eventually(live, "ns/f") and sorted(api.lists) == sorted(2 * EVERY)


def test_a_watch_that_fails_at_once_is_tried_again_after_a_pause(
    api: ApiServer, live: LiveSnapshot, clock: Clock
) -> None:
    live.state()
    api.cut(orderly=False)
    live.state()
    lists, watches = len(api.lists), len(api.watches)
    assert (lists, watches) == (2 * len(EVERY), len(EVERY)), "listed, but not watched"
    live.state()
    assert (len(api.lists), len(api.watches)) == (lists, watches)
    clock.now += FIRST_PAUSE_S
    live.state()
    assert (len(api.lists), len(api.watches)) == (lists + len(EVERY), watches + len(EVERY))


def test_a_connection_without_a_word_is_given_up(api: ApiServer, live: LiveSnapshot, clock: Clock) -> None:
    live.state()
    clock.now += WATCH_S + LATE_S
    live.state()
    assert api.lists == EVERY
    clock.now += 1
    live.state()
    assert sorted(api.lists) == sorted(2 * EVERY)


def test_a_server_that_fails_is_left_alone_for_a_while(api: ApiServer, live: LiveSnapshot, clock: Clock) -> None:
    api.failing = True
    for pause in (FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S):
        with pytest.raises(InputError, match="500 not now"):
            live.state()
        clock.now += 0.9 * pause
        api.failing = False
        with pytest.raises(InputError, match="500 not now"):
            live.state()
        api.failing = True
        clock.now += 0.2 * pause
    api.failing = False
    assert bound(live) == ["ns/a"] and MOST_PAUSE_S > 4 * FIRST_PAUSE_S


def test_a_server_without_a_watch_is_listed_again_after_a_while(api: ApiServer, clock: Clock) -> None:
    api.watched = False
    with closing(LiveSnapshot(api.url, refresh_s=2, clock=clock)) as live:
        live.state()
        api.put(pod("c", 1, "n1"))
        assert bound(live) == ["ns/a"]
        clock.now += 2
        assert sorted(bound(live)) == ["ns/a", "ns/c"]


def test_events_are_taken_in_while_nobody_asks(api: ApiServer, live: LiveSnapshot) -> None:
    """A server ends the watch of a client that does not read: ten megabytes are more than connections hold."""
    live.state()
    for number in range(100):
        api.put({**pod(f"x{number}", 1, "n1"), "spec": {"nodeName": "n1", "note": "x" * 100_000}})
    assert len(bound(live)) == 101 and api.lists == EVERY


def test_random_changes_and_failures_end_in_what_is_there(api: ApiServer, live: LiveSnapshot, clock: Clock) -> None:
    draw = random.Random(7)
    for _ in range(150):
        act = draw.random()
        name = f"p{draw.randrange(12)}"
        there: Any = api.objects.get(("Pod", f"ns/{name}"))
        if act < 0.6:
            api.put(pod(name, 1, draw.choice(["n1", None])))
        elif act < 0.8 and there is not None:
            api.remove(there)
        elif act < 0.86:
            api.cut(orderly=draw.random() < 0.5)
        elif act < 0.9:
            api.fail_watches(410)
        elif act < 0.93:
            api.forget()
        if draw.random() < 0.3:
            live.state()
        clock.now += draw.random()
    clock.now += MOST_PAUSE_S
    expected = sorted(key[1] for key, item in api.objects.items() if key[0] == "Pod" and item["spec"].get("nodeName"))
    live.state()
    api.put(node("n2"))
    assert sorted(bound(live)) == expected and set(live.state().positions) == {"n1", "n2"}
