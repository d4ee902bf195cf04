"""HTTP: replies and refusals of the service, requests that cannot hold it up, answers of servers."""

from __future__ import annotations

import http.client
import inspect
import io
import json
import re
import socket
import threading
import time
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from types import SimpleNamespace
from typing import Any

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.http import connections, replies
from fastsim.foundation.http import service as services
from fastsim.foundation.http.answers import answer_of, base_address
from fastsim.foundation.http.connections import Limits
from fastsim.foundation.http.replies import Reply, Request, json_reply
from fastsim.foundation.http.service import Service, address_of

PLAIN = b"GET / HTTP/1.0\r\n\r\n"
PATIENCE_S = 60.0


def echo(request: Request) -> Reply:
    """The request itself, as JSON."""
    return json_reply({"query": request.query, "body": request.body.decode()})


def failing(request: Request) -> Reply:
    """A route that fails."""
    raise InputError("pod: cpu", "'1GB'", "a quantity")


def surrogate(request: Request) -> Reply:
    """A route that names half a character, as JSON may."""
    raise InputError("name", "'n\ud800'", "a name of \ud800")


def broken(request: Request) -> Reply:
    """A route with a mistake."""
    raise KeyError("mine")


@contextmanager
def running(timeout_s: float) -> Iterator[Service]:
    """A service for three connections that waits `timeout_s` for a request."""
    service = Service({("GET", "/"): echo, ("POST", "/"): echo, ("GET", "/bad"): failing,
                       ("GET", "/surrogate"): surrogate, ("GET", "/broken"): broken},
                      limits=Limits(body_bytes=100, timeout_s=timeout_s, connections=3))  # fmt: skip
    ended = threading.Event()
    thread = threading.Thread(target=service.run, args=(ended.is_set,))
    thread.start()
    yield service
    ended.set()
    thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    """A service with time for a machine that is busy with something else."""
    with running(10.0) as patient:
        yield patient


@pytest.fixture
def hasty() -> Iterator[Service]:
    """A service that waits a short time."""
    with running(0.4) as impatient:
        yield impatient


def told(reason: str) -> bytes:
    """The body of a refusal."""
    return json.dumps({"error": reason}).encode()


def response(service: Service, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Status and body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S)
    connection.request(method, path, body)
    answer = connection.getresponse()
    status, content = answer.status, answer.read()
    connection.close()
    return status, content


def reply_to(service: Service, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """The reply to these bytes, until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
            time.sleep(pause_s)
        reply = b""
        try:
            while piece := connection.recv(65_536):
                reply += piece
        except ConnectionResetError:
            pass
        return reply


def test_replies(service: Service) -> None:
    status, body = response(service, "GET", "/?node=n1&node=n2")
    assert (status, json.loads(body)) == (200, {"query": {"node": "n2"}, "body": ""})
    status, body = response(service, "POST", "/", b"x" * 100)
    assert status == 200 and json.loads(body)["body"] == "x" * 100
    assert service.answered == 2


def test_a_connection_is_used_again(service: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S)
    for _ in range(3):
        connection.request("GET", "/")
        assert connection.getresponse().read()
    connection.close()


def test_unknown_paths_and_methods(service: Service) -> None:
    assert response(service, "GET", "/other") == (404, told("no such path; there is /, /bad, /broken, /surrogate"))
    assert response(service, "POST", "/bad", b"")[0] == 405
    assert response(service, "DELETE", "/")[0] == 501
    assert response(service, "GET", "/bad") == (400, told("pod: cpu: found '1GB', expected a quantity"))
    assert response(service, "GET", "/?" + "&".join("a=1" for _ in range(21)))[0] == 400


def test_long_requests_are_refused(service: Service) -> None:
    long_body = reply_to(service, b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n")
    assert long_body.startswith(b"HTTP/1.1 413 ") and long_body.endswith(told("a body of 101 bytes, at most 100"))
    assert b" 411 " in reply_to(service, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert b" 411 " in reply_to(service, b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
    long_head = b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 60_000 + b"\r\nZ: " + b"y" * 60_000
    assert b" 200 " not in reply_to(service, long_head)


def test_lengths_that_are_open_or_beyond_all_bounds(service: Service) -> None:
    head = b"POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n"
    assert b'"a body of 10^18 bytes or more, at most 100"' in reply_to(service, head % (b"9" * 5000))
    assert reply_to(service, b"POST / HTTP/1.0\r\nContent-Length: " + b"0" * 5000 + b"1\r\n\r\na").startswith(
        b"HTTP/1.1 200 "
    )
    twice = b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 1\r\n\r\nabc"
    assert b'"several Content-Length headers"' in reply_to(service, twice)


def test_whatever_is_wrong_gets_a_reply(service: Service) -> None:
    assert b" 400 " in reply_to(service, b"GET http://[::1 HTTP/1.0\r\n\r\n")
    assert response(service, "GET", "/surrogate") == (400, told("name: found 'n\\ud800', expected a name of \\ud800"))
    assert response(service, "GET", "/broken") == (500, told("internal error: KeyError"))


POST = b"POST / HTTP/1.1\r\nContent-Length: "
REFUSED = {
    400: (b"GET / HTTP/a\r\n\r\n", b"GET /a b c HTTP/1.1\r\n\r\n", b"PUT /\r\n\r\n", b"\x16\x03\x01\x02\n",
          b"GET http://[::1 HTTP/1.1\r\n\r\n", b"GET /bad HTTP/1.1\r\n\r\n", POST + b"1\r\nContent-Length: 1\r\n\r\n",
          b"GET /?" + b"&".join([b"a=1"] * 21) + b" HTTP/1.1\r\n\r\n"),
    404: (b"GET /other HTTP/1.1\r\n\r\n",),
    405: (b"POST /bad HTTP/1.1\r\nContent-Length: 0\r\n\r\n",),
    408: (b"G", b"GET / HTTP/1.1\r\nX: y\r\n", POST + b"9\r\n\r\nhalf"),
    411: (POST + b"x\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
    413: (POST + b"101\r\n\r\n", POST + b"4000000\r\n\r\n" + b"x" * 4_000_000),
    414: (b"GET /" + b"x" * 65_600,),
    431: (b"GET / HTTP/1.1\r\nX: " + b"y" * 65_000 + b"\r\nZ: " + b"y" * 10_000,
          b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n"),
    500: (b"GET /broken HTTP/1.1\r\n\r\n",),
    501: (b"DELETE / HTTP/1.1\r\n\r\n",),
    505: (b"GET / HTTP/2.0\r\n\r\n",),
}  # fmt: skip
"""Requests that are refused, by status."""


@pytest.mark.parametrize(("status", "sent"), [(s, one) for s, requests in REFUSED.items() for one in requests])
def test_every_refusal_is_json_with_its_reason(hasty: Service, status: int, sent: bytes) -> None:
    head, _, body = reply_to(hasty, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) and b"\r\nContent-Type: application/json\r\n" in head
    assert f"Content-Length: {len(body)}" in head.decode()
    answer = json.loads(body)
    assert list(answer) == ["error"] and answer["error"] and isinstance(answer["error"], str)


def test_every_status_of_the_sources_is_refused_above() -> None:
    """503 alone is played by the tests of full services."""
    own = "".join(inspect.getsource(module) for module in (connections, replies, services))
    statuses = {int(text) for text in re.findall(r"(?:refusal|_TooMuch|send_error|return) ?\(?([45]\d\d),", own)}
    handler = inspect.getsource(BaseHTTPRequestHandler)
    statuses |= {HTTPStatus[name] for name in re.findall(r"HTTPStatus\.([A-Z]\w+)", handler)}
    assert {status for status in statuses if status >= 400} == {*REFUSED, 503}


def test_a_body_that_ends_early_is_refused(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as connection:
        connection.sendall(POST + b"9\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_WR)
        reply = connection.makefile("rb").read()
    assert reply.startswith(b"HTTP/1.1 400 ") and reply.endswith(told("a body of 4 bytes, 9 by its Content-Length"))


def test_head_and_options(service: Service) -> None:
    answer = reply_to(service, b"HEAD / HTTP/1.0\r\n\r\n")
    assert b" 200 " in answer and b"Content-Length: 25\r\n" in answer and answer.endswith(b"\r\n\r\n")
    allowed = b"Allow: GET, HEAD, OPTIONS, POST\r\n"
    for target in (b"/", b"*"):
        answer = reply_to(service, b"OPTIONS %s HTTP/1.0\r\n\r\n" % target)
        assert b" 204 " in answer and allowed in answer and answer.endswith(b"\r\n\r\n")
    assert b"Allow: GET, HEAD, OPTIONS\r\n" in reply_to(service, b"POST /bad HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    assert b" 404 " in reply_to(service, b"OPTIONS /none HTTP/1.0\r\n\r\n")


def test_slow_requests_are_cut_off(hasty: Service) -> None:
    late = told("the request did not arrive in time")
    for parts in ([b"G"] * 30, [b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"]):
        reply = reply_to(hasty, *parts, pause_s=0.05)
        assert reply.startswith(b"HTTP/1.1 408 ") and reply.endswith(late)
    assert reply_to(hasty) == b""
    assert response(hasty, "GET", "/")[0] == 200


def idle(service: Service) -> list[socket.socket]:
    """As many connections as there is room for, without a request."""
    return [socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) for _ in range(3)]


def test_silent_connections_keep_no_request_out(service: Service) -> None:
    connections = idle(service)
    connections[1].sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf")
    assert b" 200 " in reply_to(service, PLAIN)
    refusal = connections[0].recv(65_536)  # the one that has waited longest made room
    assert refusal.startswith(b"HTTP/1.1 503 ") and connections[0].recv(1) == b""
    for connection in connections:
        connection.close()


def test_a_request_that_is_here_unread_is_not_cut_off_and_silence_is_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "FULL_S", 0.0)
    (heard, client), (silent, other) = socket.socketpair(), socket.socketpair()
    service: Any = SimpleNamespace(host="127.0.0.1", port=0, limits=Limits())
    with connections.Listener(service) as listener, heard, client, silent, other:
        client.sendall(PLAIN)
        listener.wait_for(heard)  # which has waited longest
        assert not listener._cut_off()
        listener.wait_for(silent)
        assert listener._cut_off() and other.recv(65_536) == connections.FULL
        assert not listener._cut_off()


def test_requests_at_work_are_not_cut_off() -> None:
    begun, going_on = threading.Semaphore(0), threading.Event()

    def slow(request: Request) -> Reply:
        begun.release()
        assert going_on.wait(PATIENCE_S)
        return Reply(b"done")

    service = Service({("GET", "/"): slow}, limits=Limits(timeout_s=PATIENCE_S, connections=2))
    ended = threading.Event()
    threads = [threading.Thread(target=service.run, args=(ended.is_set,))]
    replies: list[bytes] = []
    threads += [threading.Thread(target=lambda: replies.append(reply_to(service, PLAIN))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=PATIENCE_S) and begun.acquire(timeout=PATIENCE_S)
    for _ in range(3):
        refusal = reply_to(service, b"POST / HTTP/1.1\r\nContent-Length: 400000\r\n\r\n", b"x" * 400_000)
        head, _, text = refusal.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in head
        assert f"\r\nContent-Length: {len(text)}\r\n".encode() in head and text == told(
            "no room for another connection, try again later"
        )
    going_on.set()
    for thread in threads[1:]:
        thread.join()
    assert [reply.endswith(b"done") for reply in replies] == [True, True]
    ended.set()
    threads[0].join()


def test_parallel_requests_are_answered_though_others_are_slow() -> None:
    service = Service({("GET", "/"): echo, ("POST", "/"): echo})
    ended = threading.Event()
    server = threading.Thread(target=service.run, args=(ended.is_set,))
    server.start()
    slow = [socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) for _ in range(100)]
    for connection in slow[::2]:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf")
    with ThreadPoolExecutor(200) as clients:
        replies = list(clients.map(lambda _: response(service, "POST", "/", b"x" * 1000), range(200)))
    assert {status for status, _ in replies} == {200}
    ended.set()
    for connection in slow:
        connection.close()
    server.join()


def test_more_requests_than_connections_wait_for_their_turn(service: Service) -> None:
    with ThreadPoolExecutor(60) as clients:
        replies = list(clients.map(lambda _: response(service, "GET", "/"), range(60)))
    assert {status for status, _ in replies} <= {200, 503} and replies[0][0] == 200
    assert service.answered == sum(status == 200 for status, _ in replies)


def test_no_thread_for_a_connection(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(ThreadingMixIn, "process_request", refused)
        assert [reply_to(service, PLAIN)[:13] for _ in range(4)] == [b"HTTP/1.1 503 "] * 4
    assert response(service, "GET", "/")[0] == 200


def test_a_body_that_is_refused_is_not_asked_for(service: Service) -> None:
    head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    refusal = reply_to(service, head % 99_000_000_000)
    assert refusal.startswith(b"HTTP/1.1 413 ") and refusal.count(b"HTTP/1.1 ") == 1
    assert refusal.endswith(told("a body of 99,000,000,000 bytes, at most 100"))
    reply = reply_to(service, head % 4, b"body", pause_s=0.05)
    assert reply.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


def test_a_request_knows_the_address_that_it_reached() -> None:
    service = Service({("GET", "/"): lambda request: Reply(request.reached.encode())})
    ended = threading.Event()
    server = threading.Thread(target=service.run, args=(ended.is_set,))
    server.start()
    reply = reply_to(service, b"GET / HTTP/1.0\r\nHost: elsewhere:1\r\n\r\n")
    assert reply.endswith(f"\r\n\r\n127.0.0.1:{service.port}".encode())
    ended.set()
    server.join()


def test_idle_connections_are_not_waited_for(hasty: Service) -> None:
    for connection in idle(hasty):
        assert connection.recv(1) == b""
        connection.close()


def test_a_port_in_use(service: Service) -> None:
    with pytest.raises(ScenarioError, match=f"--listen 127.0.0.1:{service.port}: found a port in use, expected a free"):
        Service({}, port=service.port)


def test_addresses() -> None:
    assert address_of("9400") == address_of(":9400") == ("127.0.0.1", 9400)
    assert address_of("0.0.0.0:80") == ("0.0.0.0", 80) and address_of("[::1]:9") == ("::1", 9)
    for text in ("", "host", "host:http", "::1:9", "h:99999", "h:-1"):
        with pytest.raises(ScenarioError, match="--listen"):
            address_of(text)
    with pytest.raises(ScenarioError, match="the name or number of this machine"):
        Service({}, host="no such host")


def test_any_address_of_six_parts() -> None:
    try:
        local = Service({}, host="::1")
    except ScenarioError:
        pytest.skip("no IPv6 here")
    assert local.url == f"http://[::1]:{local.port}"
    local.run(lambda: True)


class Handler(BaseHTTPRequestHandler):
    """Replies with the request's path or form, or fails."""

    def answer(self) -> None:
        """Answer one request."""
        if self.command == "POST":
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = 200
        else:
            status = 403 if self.path == "/403" else 200
            body = b'{"message": "not you"}' if status == 403 else self.path.encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_answer_of_a_server(url: str) -> None:
    assert answer_of(f"{url}/here", "a test") == b"/here"
    assert answer_of(f"{url}/", "a test", {"a": 1, "b": "c d"}) == b"a=1&b=c+d"
    with pytest.raises(InputError, match="found 403 not you, expected an answer; is it a test"):
        answer_of(f"{url}/403", "a test")
    with pytest.raises(InputError, match="found more than 2 bytes"):
        answer_of(f"{url}/here", "a test", most_bytes=2)


def test_an_answer_that_is_an_error_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = io.BytesIO(b'{"error": "no such query"}')
    error = urllib.error.HTTPError("http://h", 400, "Bad Request", http.client.HTTPMessage(), body)

    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("urllib.request.urlopen", refused)
    with pytest.raises(InputError, match="found 400 no such query"):
        answer_of("http://h", "a test")
    assert body.closed


def test_base_address() -> None:
    assert base_address("http://h:1/", "x", "y") == "http://h:1"
    for url in ("h:1", "file:///etc/passwd", "http://", "http://[::1", "http://h:x", "http://h:99999"):
        with pytest.raises(ScenarioError, match="expected an address such as y"):
            base_address(url, "x", "y")
