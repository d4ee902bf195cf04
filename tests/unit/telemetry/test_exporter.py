"""A record played as an exporter tells it: what is known when, under which names, and at which pace."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.http.replies import Request
from fastsim.telemetry.exporter import Pace, Record, routes
from fastsim.telemetry.metric_names import PROFILES, Metric, described, metrics
from fastsim.telemetry.readings_table import ordered
from tests.telemetry import table

SAMPLE = re.compile(r"([a-zA-Z_]\w*)\{(.*)\} (\S+)")


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def told(text: str) -> list[tuple[str, str, float]]:
    """Names, labels and values."""
    found = [SAMPLE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    return [(match[1], match[2], float(match[3])) for match in found if match]


def values(record: Record, place_s: float) -> list[float]:
    return [value for _, _, value in told(record.text(place_s))]


def both(*tables: pa.Table) -> pa.Table:
    return ordered(pa.concat_tables(tables))


def test_the_last_reading_is_told_without_a_time() -> None:
    record = Record(table({"power_w": [(5000, 27.5), (6000, 40.0)], "util_pct": [(5000, 3.0)]}))
    assert record.length_s == 1 and record.series == 2 and record.nodes() == ["n1"]
    labels = 'gpu="0",UUID="GPU-1",modelName="V100",Hostname="n1",namespace="ns",pod="p",container="c"'
    assert record.text(0.999).splitlines() == [
        "# HELP DCGM_FI_DEV_POWER_USAGE Power that the board draws, watts.",
        "# TYPE DCGM_FI_DEV_POWER_USAGE gauge",
        f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 27.5",
        "# HELP DCGM_FI_DEV_GPU_UTIL Share of time in which the GPU ran any kernel, percent.",
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 3.0",
    ]
    assert values(record, 1) == [40.0, 3.0]


def test_every_metric_is_described_in_its_unit() -> None:
    """The text of HELP is words: what a quantity is, and in which unit this generation has it."""
    for profile in PROFILES:
        for metric in metrics(profile):
            text = described(metric)
            assert re.fullmatch(r"[A-Z][a-zA-Z ]+, [a-zA-Z0-9 ]+\.", text) and metric.quantity not in text, text
    unit = {metric.quantity: described(metric).rpartition(", ")[2] for metric in metrics("dcgm4.9")}
    assert (unit["util_pct"], unit["memory_used_mib"], unit["energy_j"]) == (
        "a number from 0 to 1.",
        "bytes.",
        "joules.",
    )
    own = Metric("fan_pct", "fan", "gauge", 7.0)
    assert described(own) == "fan_pct."


def test_names_and_units_of_every_generation() -> None:
    source = table({"memory_used_mib": [(0, 2.0)], "util_pct": [(0, 50.0)], "energy_j": [(0, 3.0)]})
    found = {profile: told(Record(source, profile=profile).text(0)) for profile in ("dcgm1", "dcgm2", "dcgm4.9")}
    assert {name: value for name, _, value in found["dcgm4.9"]} == {
        "DCGM_FI_DEV_FB_USED_BYTES": 2.0 * 1048576, "DCGM_FI_DEV_GPU_UTIL_RATIO": 0.5,
        "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL": 3.0,
    }  # fmt: skip
    assert ("dcgm_total_energy_consumption", 'gpu="0",uuid="GPU-1",Hostname="n1"', 3000.0) in found["dcgm1"]
    assert 'hostname="n1"' in found["dcgm4.9"][0][1]


def test_pods_that_are_gone_are_not_told_beside_their_successors() -> None:
    first = table({"power_w": [(0, 1.0), (1000, 2.0)]}, pod="a")
    second = table({"power_w": [(2000, 3.0), (3000, 4.0)]}, pod="b")
    record = Record(both(first, second))
    assert [values(record, place_s) for place_s in (1, 2, 9)] == [[2.0], [3.0], [4.0]]


def test_equal_labels_are_told_once() -> None:
    source = both(table({"power_w": [(0, 1.0)]}, pod="a"), table({"power_w": [(0, 1.0)]}, pod="b"))
    assert len(told(Record(source).text(0))) == 2
    assert len(told(Record(source, profile="dcgm1").text(0))) == 1  # they have no labels for pods


def test_readings_age() -> None:
    source = both(table({"power_w": [(0, 1.0)]}), table({"power_w": [(0, 2.0), (900_000, 3.0)]}, gpu_uuid="GPU-2"))
    record = Record(source, hold_s=300)
    assert values(record, 300) == [1.0, 2.0] and values(record, 301) == [] and values(record, 900) == [3.0]
    assert Record(source).hold_s == 1800  # rare readings are held longer
    assert Record(table({"power_w": [(0, 1.0)]})).hold_s == 300


def test_one_node_of_several() -> None:
    source = both(table({"power_w": [(0, 1.0)]}), table({"power_w": [(0, 2.0)]}, node="n2", gpu_uuid="GPU-2"))
    record = Record(source)
    assert [value for _, _, value in told(record.text(0, "n2"))] == [2.0] and record.text(0, "n3") == ""


POINTS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 30))


@settings(max_examples=40)
@given(st.lists(POINTS, min_size=1, max_size=40, unique=True), st.integers(0, 31))
def test_what_is_known_is_what_a_plain_search_finds(points: list[tuple[int, int, int]], second: int) -> None:
    readings = [
        table({"power_w": [(1000 * at, float(100 * device + at))]}, gpu_uuid=f"GPU-{device}", pod=f"p{pod}")
        for device, pod, at in points
    ]
    first = min(at for *_, at in points)
    found = values(Record(both(*readings), hold_s=10), second - first)
    expected = []
    for device in {device for device, *_ in points}:
        times = [at for other, _, at in points if other == device]
        newest = max((at for at in times if at <= min(second, max(at for *_, at in points))), default=None)
        if newest is not None and min(second, max(at for *_, at in points)) - newest <= 10:
            expected += [float(100 * device + newest)] * times.count(newest)
    if second >= first:
        assert sorted(found) == sorted(expected)


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()


def test_pace(clock: Clock) -> None:
    paces = {at_end: Pace(10, 2, at_end, clock) for at_end in ("stop", "hold", "repeat")}
    clock.now += 4
    assert {pace.place_s for pace in paces.values()} == {8}
    clock.now += 2
    assert [pace.place_s for pace in paces.values()] == [10, 10, 2]
    assert [pace.over for pace in paces.values()] == [True, False, False]
    with pytest.raises(ScenarioError, match="monitor: speed: found 0"):
        Pace(10, 0)
    with pytest.raises(ScenarioError, match="found 'loop', expected one of stop, hold, repeat"):
        Pace(10, 1, "loop")


def test_paths(clock: Clock) -> None:
    record = Record(table({"power_w": [(0, 1.0), (9000, 2.0)]}))
    found = routes(record, Pace(record.length_s, clock=clock))
    scrape, targets = found["GET", "/metrics"], found["GET", "/targets"]
    clock.now += 4
    reply = scrape(Request({}))
    assert reply.type.startswith("text/plain; version=0.0.4") and reply.body.endswith(b"fastsim_record_seconds 4.0\n")
    assert b"POWER" in reply.body and b"POWER" not in scrape(Request({"node": "n2"})).body
    assert targets(Request({}, "h:1")).body == (
        b'[{"targets": ["h:1"], "labels": {"__param_node": "n1", "instance": "n1"}}]'
    )
    assert b"/metrics" in found["GET", "/"](Request({})).body


def test_bad_tables() -> None:
    with pytest.raises(InputError, match="found no readings"):
        Record(table({}))
    with pytest.raises(InputError, match="found 'light_lm', expected one of util_pct"):
        Record(table({"light_lm": [(0, 1.0)]}))
