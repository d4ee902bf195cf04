"""Reading from a Prometheus server: a small one of our own, which refuses what the real one refuses."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.telemetry.metric_names import by_name
from fastsim.telemetry.prometheus import MOST_POINTS, Doubtful, Prometheus, saved_samples
from fastsim.telemetry.readings_table import table_of

NAME = "DCGM_FI_DEV_POWER_USAGE"


class Server(ThreadingHTTPServer):
    """Answers range queries of one metric: its value is the second, and a pod comes at second 100."""

    mode = "good"
    asked: list[dict[str, str]]


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's mode says."""

    def answer(self) -> None:
        """One query."""
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        parameters = {name: values[0] for name, values in parse_qs(body).items()}
        server.asked.append(parameters)
        status, text = answered(server.mode, parameters)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text) * (2 if server.mode == "half" else 1)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def answered(mode: str, asked: dict[str, str]) -> tuple[int, bytes]:
    if "time" in asked:
        asked = instant(asked)
    start, end, step = (int(asked[name]) for name in ("start", "end", "step"))
    if mode == "broken":
        return 500, b"<html>out of order</html>"
    if mode == "text":
        return 200, b"not JSON"
    if (end - start) // step + 1 > MOST_POINTS and "range" not in asked:
        return 400, json.dumps(
            {"status": "error", "errorType": "bad_data", "error": "exceeded maximum resolution"}
        ).encode()
    if mode == "bad_series":
        result: list[Any] = [{"metric": {}, "values": [["now", None]]}]
    elif not asked["query"].startswith(NAME):
        result = []
    else:
        labels = {"__name__": NAME, "UUID": "GPU-1", "gpu": "0", "Hostname": "n1", "pod": "exporter"}
        seconds = range(start, end + 1, step)
        parts: tuple[tuple[dict[str, str], list[int]], ...] = (
            ({}, [s for s in seconds if s < 100]),
            ({"exported_pod": "p"}, [s for s in seconds if s >= 100]),
        )
        result = [
            {"metric": {**labels, **more}, "values": [[s, str(float(s))] for s in found]}
            for more, found in parts
            if found
        ]
    return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def instant(asked: dict[str, str]) -> dict[str, str]:
    """A query of a range at an instant, in other words; its beginning does not belong to it, as in newer versions."""
    selector, _, window = asked["query"].rpartition("[")
    end = int(float(asked["time"]))
    return {
        "query": selector,
        "start": str(max(end - int(window[:-2]) + 1, 0)),
        "end": str(end),
        "step": "1",
        "range": "1",
    }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with Server(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client(server: Server) -> Prometheus:
    return Prometheus(f"http://127.0.0.1:{server.server_port}/", timeout_s=10)


def test_more_points_than_one_answer_may_have(server: Server) -> None:
    found = list(client(server).samples(NAME, 0, 25_000))
    assert [sample.ts_ms for sample in found] == [1000 * second for second in range(25_001)]
    assert [(page["start"], page["end"]) for page in server.asked] == [
        ("0", "10999"), ("11000", "21999"), ("22000", "25000"),
    ]  # fmt: skip
    assert len(list(client(server).samples(NAME, 0, MOST_POINTS - 1))) == MOST_POINTS


def test_samples_as_they_are_stored(server: Server) -> None:
    found = list(client(server).stored_samples(NAME, 5, 25_000))
    assert [sample.ts_ms for sample in found] == [1000 * second for second in range(5, 25_001)]
    assert {page["query"] for page in server.asked} == {f"{NAME}[10801s]"}
    assert [page["time"] for page in server.asked] == ["10804.999", "21604.999", "25000.000"]
    assert client(server).stored(99, 101, where='pod!=""')["pod"].to_pylist() == [None, "p", "p"]
    with pytest.raises(ScenarioError, match="an end after the start"):
        list(client(server).stored_samples(NAME, 5, 4))


def test_readings_of_every_known_name(server: Server) -> None:
    table = client(server).readings(90, 109, 5, where='Hostname="n1"')
    assert table["value"].to_pylist() == [90, 95, 100, 105]
    assert table["pod"].to_pylist() == [None, None, "p", "p"]
    assert {page["query"] for page in server.asked} >= {f'{NAME}{{Hostname="n1"}}', 'dcgm_fb_used{Hostname="n1"}'}
    assert table["ts"][0].as_py().timestamp() == 90


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("broken", "found 500 Internal Server Error"),
        ("text", "'not JSON', expected a matrix"),
        ("half", "found an answer that lacks"),
        ("bad_series", "a series: found"),
    ],
)
def test_bad_answers_are_one_clear_error(server: Server, mode: str, found: str) -> None:
    server.mode = mode
    with pytest.raises(InputError, match=f"127.0.0.1:{server.server_port}") as raised:
        client(server).readings(0, 10)
    assert found in str(raised.value)


def test_the_server_s_own_words_are_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastsim.telemetry.prometheus.MOST_POINTS", 12_000)
    with pytest.raises(InputError, match="found 400 bad_data: exceeded maximum resolution"):
        list(client(server).samples(NAME, 0, 11_500))


def test_a_long_answer_is_not_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastsim.telemetry.prometheus.MOST_BYTES", 100)
    with pytest.raises(InputError, match="found more than 100 bytes"):
        list(client(server).samples(NAME, 0, 100))


def test_a_dead_server(server: Server) -> None:
    dead = client(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match=f"127.0.0.1:{server.server_port}.*refused"):
        dead.readings(0, 10)


def test_bad_questions() -> None:
    with pytest.raises(ScenarioError, match="found 'localhost:9090'"):
        Prometheus("localhost:9090")
    for start_s, end_s, step_s in ((5, 4, 1), (0, 5, 0)):
        with pytest.raises(ScenarioError, match="prometheus: range"):
            list(Prometheus("http://127.0.0.1:1").samples(NAME, start_s, end_s, step_s))


def test_an_instant_vector_that_was_saved(tmp_path: Path) -> None:
    labels = {"__name__": NAME, "UUID": "GPU-1", "gpu": "0", "Hostname": "n1"}
    result = [{"metric": labels, "value": [1_700_000_000.5, "37"]}]
    path = tmp_path / "now.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}))
    assert [(sample.ts_ms, sample.value) for sample in saved_samples(path)] == [(1_700_000_000_500, 37.0)]


def test_an_error_that_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text(json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error: at char 3"}))
    with pytest.raises(InputError, match="found bad_data: parse error: at char 3, expected a successful answer"):
        list(saved_samples(path))


@pytest.mark.parametrize("time", ["Infinity", "NaN", "9e11", "-1e300"])
def test_times_beyond_all_years(tmp_path: Path, time: str) -> None:
    path = tmp_path / "far.json"
    series = f'{{"metric": {{"__name__": "{NAME}"}}, "value": ["{time}", "37"]}}'
    path.write_text(f'{{"status": "success", "data": {{"resultType": "vector", "result": [{series}]}}}}')
    with pytest.raises(InputError, match="a series: found"):
        list(saved_samples(path))


def test_native_histograms_are_counted(tmp_path: Path) -> None:
    histogram = [1, {"count": "3", "sum": "6", "buckets": [[1, "1", "2", "3"]]}]
    result = [
        {"metric": {"__name__": "http_s"}, "histograms": [histogram, histogram]},
        {"metric": {"__name__": "rpc_s"}, "histogram": histogram},
        {"metric": {"__name__": NAME}, "values": [[1, "37"]], "histograms": [histogram]},
    ]
    path = tmp_path / "range.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    unknown: Counter[str] = Counter()
    assert table_of(saved_samples(path), by_name(), unknown)["value"].to_pylist() == [37]
    assert unknown == {"http_s (histogram)": 1, "rpc_s (histogram)": 1, f"{NAME} (histogram)": 1}


def test_warnings_of_an_answer_are_told(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    answer = {"status": "success", "data": {"resultType": "vector", "result": []}}
    path.write_text(json.dumps(answer | {"warnings": ["partial response:\n no store", "b", "b"], "infos": ["c"]}))
    with pytest.warns(
        Doubtful, match=rf"^{path}: the answer of Prometheus warns: partial response:\\n no store; b; c$"
    ):
        assert list(saved_samples(path)) == []
    path.write_text(json.dumps(answer | {"warnings": None, "infos": []}))
    assert list(saved_samples(path)) == []
