"""Requests to the extender and the endpoint of readings with changed bodies, targets and bytes on the wire."""

from __future__ import annotations

import atexit
import json
import random
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import LiveSnapshot
from fastsim.foundation.http.connections import Limits
from fastsim.foundation.http.service import Route, Service
from fastsim.telemetry.exporter import Pace, Record, routes
from fastsim.telemetry.openmetrics import read_files
from tests.fuzz import mutation, trial
from tests.fuzz.kubernetes import OBJECTS
from tests.fuzz.readings import TEXTS
from tests.fuzz.trial import Trial
from tests.objects import node, pod

_BY_KIND = {kind: [item for item in OBJECTS if item["kind"] == kind] for kind in ("Node", "Pod")}
TARGETS_OF_REQUESTS = (
    "/filter", "/prioritize", "/healthz", "/livez", "/readyz", "/metrics", "/metrics?node=n1", "/targets", "/",
    "/metrics?node=%00&x=1",
)  # fmt: skip
WIRE = (
    "GET /metrics?node=n1 HTTP/1.1\r\nHost: a:9400\r\nConnection: close\r\n\r\n",
    "POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.0\r\n\r\n",
    "GET /targets HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
)
PATIENCE_S = 20.0
"""Longest that a reply may take, seconds."""


def _routes() -> dict[tuple[str, str], Route]:
    """Paths of both services, on a small cluster and a short record."""
    base = trial.folder("services")
    live = [
        node("n1", {}, {}, {"nvidia.com/gpu": "4"}),
        node("n2"),
        pod("held", {"cpu": "1"}, status={"phase": "Running"}, nodeName="n1"),
    ]
    (base / "live.json").write_text(json.dumps({"kind": "List", "items": live}))
    (base / "gpu.om").write_text(TEXTS[1])
    record = Record(read_files(base / "gpu.om"))
    extender = Extender(LiveSnapshot(str(base / "live.json"), refresh_s=1e9), "best_fit")
    return {**extender.routes(), **routes(record, Pace(record.length_s, at_end="hold"))}


def _request(draw: random.Random) -> tuple[str, str, str, bytes]:
    target = draw.choice(TARGETS_OF_REQUESTS)
    method = draw.choice(("GET", "POST", "HEAD", "OPTIONS", "PUT")) if draw.random() < 0.2 else "GET"
    body = b""
    if target in ("/filter", "/prioritize"):
        method = "POST"
        arguments: Any = {"Pod": draw.choice(_BY_KIND["Pod"]), "NodeNames": ["n1", "n2", "n9"]}
        if draw.random() < 0.5:
            arguments = {"Pod": arguments["Pod"], "Nodes": {"items": _BY_KIND["Node"]}}
        body = mutation.raw(mutation.json_text(arguments, draw), draw)
    else:
        target = mutation.text(target, draw)
    return method, target, mutation.text("a:9400", draw), body


def requests() -> Trial:
    """Requests as they come out of the wire."""
    known = _routes()
    service = Service(known)

    def answered(given: tuple[str, str, str, bytes]) -> None:
        reply = service.answer(*given)
        assert reply.status in (200, 204, 400, 404, 405), (given, reply)
        assert isinstance(reply.body, bytes) and len(reply.body) < 1 << 20
        if reply.status == 200 and given[1] in ("/filter", "/prioritize"):
            _require_points(json.loads(reply.body))
        if reply.status == 400:
            trial.refuse_unclear(json.loads(reply.body)["error"])

    return trial.of(_request, answered)


def _require_points(answer: Any) -> None:
    if isinstance(answer, Mapping):
        trial.refuse_unclear(str(answer["Error"]))
    else:
        assert all(0 <= item["Score"] <= 10 for item in answer), answer


def wire() -> Trial:
    """Bytes of requests to a service that runs: a status, or the end of the connection, in time."""
    service = Service(_routes(), limits=Limits(timeout_s=5.0))
    ended = threading.Event()
    threading.Thread(target=service.run, args=(ended.is_set,), daemon=True).start()
    atexit.register(ended.set)

    def sent(data: bytes) -> None:
        with socket.create_connection(("127.0.0.1", service.port), PATIENCE_S) as connection:
            received = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(1 << 16):
                    received += piece
            except (ConnectionResetError, BrokenPipeError):  # the service refused before all was sent
                return
        assert b" 500 " not in received[:20] and b"Traceback" not in received, received[:300]

    return trial.of(lambda draw: mutation.raw(mutation.text(WIRE, draw), draw), sent)


TARGETS: dict[str, Callable[[], Trial]] = {"HTTP requests": requests, "HTTP bytes": wire}
"""Trials by name."""
