"""Both sides of HTTP: a small service with bounded requests, time and connections, and complete answers of servers.

A service listens on this machine only, unless another address is given; one function answers each path, and a reply
never shows a traceback. Passwords and encryption are the task of a proxy in front of it.
"""

from __future__ import annotations

import errno
import http.client
import io
import json
import select
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from fastsim.errors import FastsimError, InputError, ScenarioError, short
from fastsim.foundation import interrupts
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line

LOOPBACK = "127.0.0.1"
"""Default address of a service; only programs of this machine reach it."""
PLAIN, JSON = "text/plain; charset=utf-8", "application/json"
HEAD_BYTES = 1 << 16
"""Longest request without its body."""
BREATH_S = 0.1
"""Seconds between two checks whether the service should end."""
ALL_METHODS = ("GET", "HEAD", "OPTIONS", "POST")
"""Methods of a service as a whole."""
MOST_DIGITS = 18
"""Longest number of a Content-Length."""
MOST_BYTES = 1 << 28
"""Longest answer that is read."""


class Request(NamedTuple):
    """A request: values of the query by name, the Host header and the body."""

    query: Mapping[str, str]
    host: str = ""
    body: bytes = b""


class Reply(NamedTuple):
    """A reply: body, content type, status code; allowed methods in replies to OPTIONS or to a refused method."""

    body: bytes
    type: str = PLAIN
    status: int = 200
    allow: tuple[str, ...] = ()


Route = Callable[[Request], Reply]
"""Answers one path; a FastsimError becomes a reply with status 400."""


def json_reply(value: object, status: int = 200) -> Reply:
    """A reply in JSON."""
    return Reply(json.dumps(value).encode(), JSON, status)  # ASCII: half a surrogate pair stays an escape


class Limits(NamedTuple):
    """Bytes of a body, seconds for a whole request or for sending its reply, connections at a time."""

    body_bytes: int = 1 << 20
    timeout_s: float = 10.0
    connections: int = 64


def address_of(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[::1]:PORT``, ``:PORT`` or ``PORT``; without a host it is this machine only."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16) or (":" in host and not host.startswith("[")):
        raise ScenarioError("--listen", repr(text), f"HOST:PORT, such as {LOOPBACK}:9400")
    return host.strip("[]") or LOOPBACK, int(port)


@dataclass
class Service:
    """Answers ``routes``, functions by method and path, at an address; port 0 is any that is free."""

    routes: Mapping[tuple[str, str], Route]
    host: str = LOOPBACK
    port: int = 0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        try:
            self._server = _Server(self)
        except OSError as error:
            # An unknown host name gets another message than an address in use.
            if isinstance(error, socket.gaierror):
                raise ScenarioError("--listen", repr(self.host), "the name or number of this machine") from None
            found = "a port in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            raise ScenarioError(f"--listen {self.host}:{self.port}", found, "a free one", "choose another") from None
        self.port = int(self._server.server_address[1])
        self.answered = 0

    @property
    def url(self) -> str:
        """The address of the service, such as ``http://127.0.0.1:9400``."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def run(self, over: Callable[[], bool] = lambda: False) -> None:
        """Serve until `over()` is true, then finish open requests; Ctrl-C cuts them off."""
        self._server.timeout = BREATH_S
        try:
            while not (over() or interrupts.pending()):
                self._server.handle_request()
            self._finish()
            interrupts.check()
        finally:
            self._server.server_close()

    def _finish(self) -> None:
        """Wait for open requests, as long as one may take."""
        latest_s = time.monotonic() + self.limits.timeout_s
        while self._server.has_open_requests() and time.monotonic() < latest_s:
            time.sleep(BREATH_S / 10)

    def methods(self, path: str) -> tuple[str, ...]:
        """The methods that a path answers; none if there is no such path."""
        here = {method for method, known in self.routes if known == path}
        further = {"OPTIONS"} | ({"HEAD"} if "GET" in here else set())
        return tuple(sorted(here | further)) if here else ()

    def answer(self, method: str, target: str, host: str, body: bytes) -> Reply:
        """The reply to one request."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return Reply(b"no such target\n", status=400)
        method = "GET" if method == "HEAD" else method
        known, methods = {path for _, path in self.routes}, self.methods(parts.path)
        if method == "OPTIONS" and (methods or target == "*"):
            return Reply(b"", status=204, allow=methods or ALL_METHODS)
        route = self.routes.get((method, parts.path))
        if route is None:
            if methods:
                return Reply(b"no such method here\n", status=405, allow=methods)
            return Reply(f"no such path; there is {', '.join(sorted(known))}\n".encode(), status=404)
        try:
            query = {name: values[-1] for name, values in parse_qs(parts.query, max_num_fields=20).items()}
            reply = route(Request(query, host, body))
        except (FastsimError, ValueError) as error:
            return Reply(f"{error}\n".encode(errors="backslashreplace"), status=400)
        except Exception as error:  # the client gets an answer whatever is wrong with us
            print(f"fastsim: {parts.path}: {short(f'{type(error).__name__}: {error}', 200)}", file=sys.stderr)
            return Reply(f"internal error: {type(error).__name__}\n".encode(), status=500)
        self.answered += 1
        return reply


def base_address(url: str, where: str, example: str) -> str:
    """The address of a server without a slash at its end; ScenarioError if it is none."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.netloc) and parts.port != 0
    except ValueError:  # half a bracket, or a port that is none
        good = False
    if not good:
        raise ScenarioError(where, repr(url), f"an address such as {example}")
    return url.rstrip("/")


def answer_of(
    address: str, whose: str, form: Mapping[str, object] | None = None, *, timeout_s: float = 30.0,
    most_bytes: int = MOST_BYTES,
) -> bytes:  # fmt: skip
    """The answer of a server to a GET, or to a POST of `form` if there is one; `whose` names it, as in "a Prometheus".

    Anything but a complete and successful answer is an InputError; `timeout_s` is the longest silence, seconds.
    """
    request = urllib.request.Request(address, None if form is None else urlencode(form).encode())
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            body: bytes = answer.read(most_bytes + 1)
            missing = answer.length or 0
    except urllib.error.HTTPError as error:
        with error:  # it is the open answer, too
            found = f"{error.code} {_reason(error)}"
        raise InputError(address, found, "an answer", f"is it {whose}?") from None
    except (OSError, http.client.HTTPException) as error:
        raise InputError(address, one_line(error), f"a complete answer of {whose} server") from None
    if len(body) > most_bytes:
        raise InputError(address, f"more than {most_bytes:,} bytes", "a shorter answer", "ask for less at a time")
    if missing:
        raise InputError(address, f"an answer that lacks {missing:,} bytes", "a complete one", "ask again")
    return body


def failure(document: Mapping[str, object]) -> str | None:
    """The error in a JSON answer, after its kind if that is given; None without one."""
    parts = [str(document[name]) for name in ("errorType", "error") if document.get(name)]
    return " ".join(": ".join(parts).split()) or None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, service: Service) -> None:
        self.service = service
        self.room = threading.BoundedSemaphore(service.limits.connections)
        self._waiting, self._changing = dict[Any, None](), threading.Lock()
        self._begun = set[Any]()
        self.address_family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
        super().__init__((service.host, service.port), _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's own, which looks up this machine's full name.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.service.host, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.room.acquire(blocking=False) and not (self._cut_off() and self.room.acquire(timeout=BREATH_S)):
            self.shutdown_request(request)
            return
        self.wait_for(request)
        super().process_request(request, client_address)

    def wait_for(self, connection: Any) -> None:
        """Count a connection among those whose request is not here yet, as the newest of them."""
        with self._changing:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def wait_no_more(self, connection: Any) -> None:
        """The request of a connection is here, or the connection is over."""
        with self._changing:
            self._waiting.pop(connection, None)

    def begin(self, connection: Any) -> None:
        """Bytes of a request are here, and still unread."""
        with self._changing:
            self._begun.add(connection)

    def end(self, connection: Any) -> None:
        """The reply was sent as a whole, or never will be."""
        with self._changing:
            self._begun.discard(connection)

    def has_open_requests(self) -> bool:
        """Whether bytes of a request are here whose reply was not sent yet."""
        with self._changing:
            if self._begun:
                return True
            with suppress(OSError, ValueError):  # closed meanwhile
                return bool(select.select(list(self._waiting), [], [], 0)[0])
        return False

    def _cut_off(self) -> bool:
        """End the connection that has waited longest for a request, so that silent ones keep no other out."""
        with self._changing:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                return False
            del self._waiting[oldest]
            with suppress(OSError):  # closed by its client
                oldest.shutdown(socket.SHUT_RDWR)
            return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        except interrupts.STOPPED:  # a long answer saw that the end has come
            self.shutdown_request(request)
        finally:
            self.wait_no_more(request)
            self.end(request)
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print unexpected errors; a client that closes its connection early is none."""
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"fastsim: {client_address[0]}: {type(error).__name__}: {error}", file=sys.stderr)


class _TooMuch(TimeoutError):
    """A request that is too long; the handler closes the connection, as it does for one that takes too long."""


class _Bounded(io.RawIOBase):
    """The incoming bytes of a connection, bounded in number and in time; `begin` is called before any is taken."""

    def __init__(self, connection: socket.socket, begin: Callable[[Any], None]) -> None:
        self.connection, self.bytes_left, self.until_s = connection, 0, 0.0
        self.begin = begin

    def readable(self) -> bool:
        return True

    def renew(self, byte_count: int, seconds: float) -> None:
        """Begin a request of at most `byte_count` bytes and `seconds`."""
        self.bytes_left, self.until_s = byte_count, time.monotonic() + seconds

    def readinto(self, buffer: Any) -> int:
        seconds = self.until_s - time.monotonic()
        if self.bytes_left <= 0 or seconds <= 0:
            raise _TooMuch
        self.connection.settimeout(seconds)
        if self.connection.recv(1, socket.MSG_PEEK):
            self.begin(self.connection)
        count = self.connection.recv_into(memoryview(buffer)[: self.bytes_left])
        self.bytes_left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "fastsim", ""
    wbufsize, disable_nagle_algorithm = -1, True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.bounded = _Bounded(self.connection, self.server.begin)
        self.rfile = io.BufferedReader(self.bounded)

    def handle_one_request(self) -> None:
        limits = self.server.service.limits
        self.bounded.renew(HEAD_BYTES + limits.body_bytes, limits.timeout_s)
        self.server.wait_for(self.connection)
        super().handle_one_request()
        self.server.end(self.connection)

    def handle_expect_100(self) -> bool:
        """Send "100 Continue" at once to a client that waits for it before it sends its body."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def answer(self) -> None:
        """Answer one request."""
        body = self._body()
        if body is None:
            return
        self.server.wait_no_more(self.connection)
        reply = self.server.service.answer(self.command, self.path, self.headers.get("Host", ""), body)
        self.connection.settimeout(self.server.service.limits.timeout_s)
        self.send_response(reply.status)
        if reply.allow:
            self.send_header("Allow", ", ".join(reply.allow))
        if reply.status != 204:  # which has no body, so that its length is not stated either
            self.send_header("Content-Type", reply.type)
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_GET = do_HEAD = do_OPTIONS = do_POST = answer

    def _body(self) -> bytes | None:
        """The body; None if it was refused."""
        lengths, most = self.headers.get_all("Content-Length", ["0"]), self.server.service.limits.body_bytes
        length = lengths[0].strip()
        if len(lengths) > 1:  # which of them counts is open, and a proxy may have chosen the other one
            self._refuse(400, "several Content-Length headers")
        elif "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            self._refuse(411, "a body needs its Content-Length")
        elif len(length.lstrip("0")) > MOST_DIGITS:
            self._refuse(413, f"a body of 10^{MOST_DIGITS} bytes or more, at most {most:,}")
        elif int(length[-MOST_DIGITS:]) > most:
            self._refuse(413, f"a body of {int(length[-MOST_DIGITS:]):,} bytes, at most {most:,}")
        else:
            size = int(length[-MOST_DIGITS:])
            body = self.rfile.read(size)
            if len(body) == size:
                return body
            self.close_connection = True
        return None

    def _refuse(self, status: int, text: str) -> None:
        self.close_connection = True
        self.connection.settimeout(self.server.service.limits.timeout_s)
        self.send_error(status, text)
        self.wfile.flush()
        # A client that is cut off while it still sends may never see the reply.
        self.connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while self.rfile.read1():
                pass

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: scrapes come every second."""


def _reason(error: urllib.error.HTTPError) -> str:
    """The server's reason: from its JSON body, else from the status line."""
    try:
        document = json_value(error.read(65_536))
        return failure(document) or str(document["message"])
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return str(error.reason)
