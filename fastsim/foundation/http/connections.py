"""Connections of a service: room for so many at a time, requests bounded in bytes and time, refusals in words."""

from __future__ import annotations

import io
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, NamedTuple, Protocol

from fastsim.foundation import interrupts
from fastsim.foundation.http.replies import Reply, refusal

HEAD_BYTES = 1 << 16
"""Longest request without its body."""
MOST_DIGITS = 18
"""Longest number of a Content-Length."""
BREATH_S = 0.1
"""Seconds between two checks whether the service should end."""
FULL_S = 0.5
"""Seconds without room for a connection after which new ones are refused, and silent ones may be."""
RETRY_S = 1
"""Seconds after which a client that was refused may come back."""
MOST_REFUSED = 256
"""Most refused connections that are kept until their clients have read the refusal."""
NO_ROOM = refusal(503, "no room for another connection, try again later")
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nContent-Type: %s\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s"
) % (RETRY_S, NO_ROOM.type.encode(), len(NO_ROOM.body), NO_ROOM.body)
"""The reply on a connection beyond the limit."""


def host_port(host: str, port: int) -> str:
    """``HOST:PORT``, with brackets around a host that has colons."""
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _say_full(connection: Any, ended: int) -> None:
    """Send the reply that there is no room, without waiting, and end these directions of the connection."""
    with suppress(OSError):  # closed by its client
        connection.send(FULL, getattr(socket, "MSG_DONTWAIT", 0))
        connection.shutdown(ended)


def _is_at_end(connection: Any) -> bool:
    """Drop the bytes that are here; whether the client has ended the connection."""
    try:
        while connection.recv(HEAD_BYTES):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _readable(connections: Sequence[Any]) -> list[Any]:
    """The connections with bytes, or an end, that were not read yet."""
    by_descriptor = {one.fileno(): one for one in connections if one.fileno() >= 0}  # closed meanwhile
    if not hasattr(select, "poll"):
        with suppress(OSError, ValueError):
            return select.select(connections, [], [], 0)[0]
        return []
    poll = select.poll()
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    return [by_descriptor[descriptor] for descriptor, _ in poll.poll(0)]


class Limits(NamedTuple):
    """Bytes of a body, seconds for a whole request or for sending its reply, connections at a time."""

    body_bytes: int = 1 << 20
    timeout_s: float = 10.0
    connections: int = 512


class Answering(Protocol):
    """Answers the requests of connections, such as a :class:`fastsim.foundation.http.service.Service`."""

    host: str
    port: int
    limits: Limits

    def answer(self, method: str, target: str, reached: str, body: bytes) -> Reply:
        """The reply to a request."""


class Listener(ThreadingHTTPServer):
    """Connections beyond the limit wait until the system hands them over; those beyond that are refused in words."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, service: Answering) -> None:
        self.service = service
        self.room = threading.BoundedSemaphore(service.limits.connections)
        self._waiting, self._changing = dict[Any, float](), threading.Lock()
        self._begun = set[Any]()
        self._full_since_s: float | None = None
        self._refused = dict[Any, float]()
        self.address_family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
        super().__init__((service.host, service.port), _Handler)

    def server_bind(self) -> None:
        """Bind the address as HTTPServer does, without looking up the full name of this machine."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.service.host, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread, or refuse it."""
        if not self._has_room():
            self._refuse(request)
            return
        self.wait_for(request)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system allows no further thread
            self.wait_no_more(request)
            self.room.release()
            self._refuse(request)

    def _has_room(self) -> bool:
        """Whether a connection may begin, after waiting a little for another one to end."""
        since_s = time.monotonic() if self._full_since_s is None else self._full_since_s
        while not self.room.acquire(timeout=BREATH_S / 10):
            if not self._cut_off() and time.monotonic() - since_s >= FULL_S:
                self._full_since_s = since_s
                return False
        self._full_since_s = None
        return True

    def _refuse(self, connection: Any) -> None:
        """Say on a connection that there is no room for it, and keep it until its client can have read that."""
        connection.setblocking(False)
        _say_full(connection, socket.SHUT_WR)
        self._refused[connection] = time.monotonic() + FULL_S
        self.forget_refused()

    def forget_refused(self) -> None:
        """Close refused connections whose time is over: one that is closed with bytes unread would lose its reply."""
        ended = {connection for connection in _readable(list(self._refused)) if _is_at_end(connection)}
        now_s = time.monotonic()
        for connection, until_s in list(self._refused.items()):
            if connection in ended or until_s <= now_s or len(self._refused) > MOST_REFUSED:
                del self._refused[connection]
                self.close_request(connection)

    def server_close(self) -> None:
        """Close the address, and connections that were refused."""
        super().server_close()
        for connection in self._refused:
            self.close_request(connection)

    def wait_for(self, connection: Any) -> None:
        """Count a connection among those whose request is not here yet, as the newest of them."""
        with self._changing:
            self._waiting.pop(connection, None)
            self._waiting[connection] = time.monotonic()

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
            return bool(_readable(list(self._waiting)))

    def _cut_off(self) -> bool:
        """End the connection that has waited longest for a request, so that silent ones keep no other out.

        A connection that is new, or whose bytes are here unread, is left alone: its thread may not have come to it.
        """
        latest_s = time.monotonic() - FULL_S
        with self._changing:
            silent = [connection for connection, since_s in self._waiting.items() if since_s <= latest_s]
            heard = set(_readable(silent))
            oldest = next((connection for connection in silent if connection not in heard), None)
            if oldest is None:
                return False
            del self._waiting[oldest]
            _say_full(oldest, socket.SHUT_RDWR)
            return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of one connection."""
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
    """A request that is too long or takes too long; ``status`` and the text say which."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Bounded(io.RawIOBase):
    """The incoming bytes of a connection, bounded in number and in time; `begin` is called before any is taken.

    `cut_off` is why the request is not read to its end; None while it may be, or before its first byte.
    """

    def __init__(self, connection: socket.socket, begin: Callable[[Any], None]) -> None:
        self.connection, self.bytes_left, self.until_s = connection, 0, 0.0
        self.begin, self.begun = begin, False
        self.cut_off: _TooMuch | None = None

    def readable(self) -> bool:
        return True

    def renew(self, byte_count: int, seconds: float) -> None:
        """Begin a request of at most `byte_count` bytes and `seconds`."""
        self.bytes_left, self.until_s = byte_count, time.monotonic() + seconds
        self.begun, self.cut_off = False, None

    def readinto(self, buffer: Any) -> int:
        try:
            return self._received(buffer)
        except TimeoutError as error:
            late = _TooMuch(408, "the request did not arrive in time")
            self.cut_off = (error if isinstance(error, _TooMuch) else late) if self.begun else None
            raise

    def _received(self, buffer: Any) -> int:
        seconds = self.until_s - time.monotonic()
        if self.bytes_left <= 0:
            raise _TooMuch(431, "a request whose head is too long")
        if seconds <= 0:
            raise TimeoutError
        self.connection.settimeout(seconds)
        if self.connection.recv(1, socket.MSG_PEEK):
            self.begun = True
            self.begin(self.connection)
        count = self.connection.recv_into(memoryview(buffer)[: self.bytes_left])
        self.bytes_left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    protocol_version, default_request_version = "HTTP/1.1", "HTTP/1.0"
    server_version, sys_version = "fastsim", ""
    wbufsize, disable_nagle_algorithm = -1, True
    server: Listener

    def setup(self) -> None:
        super().setup()
        self.bounded = _Bounded(self.connection, self.server.begin)
        self.rfile = io.BufferedReader(self.bounded)

    def handle_one_request(self) -> None:
        limits = self.server.service.limits
        self.bounded.renew(HEAD_BYTES + limits.body_bytes, limits.timeout_s)
        self.server.wait_for(self.connection)
        self.command, self.requestline, self.request_version = "", "", self.default_request_version
        super().handle_one_request()
        if self.bounded.cut_off is not None:
            self.send_error(self.bounded.cut_off.status, str(self.bounded.cut_off))
        self.server.end(self.connection)

    def handle_expect_100(self) -> bool:
        """Send "100 Continue" at once to a client that waits for it before it sends a body, unless that is refused."""
        if refused := self._refused():
            self.send_error(*refused)
            return False
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def answer(self) -> None:
        """Answer one request."""
        body = self._body()
        if body is None:
            return
        self.server.wait_no_more(self.connection)
        self._send(self.server.service.answer(self.command, self.path, self._reached(), body))

    def _send(self, reply: Reply) -> None:
        self.connection.settimeout(self.server.service.limits.timeout_s)
        self.send_response(reply.status)
        if reply.allow:
            self.send_header("Allow", ", ".join(reply.allow))
        if reply.status != 204:  # which has no body, so that its length is not stated either
            self.send_header("Content-Type", reply.type)
            self.send_header("Content-Length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request in JSON, and end its connection; ``http.server`` does so if it cannot read one."""
        self.close_connection = True
        self._send(refusal(int(code), message or self.responses[code][0]))
        self.wfile.flush()
        # A client that is cut off while it still sends may never see the reply.
        self.connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while self.rfile.read1():
                pass
        self.bounded.cut_off = None

    do_GET = do_HEAD = do_OPTIONS = do_POST = answer

    def _reached(self) -> str:
        """Address and port of this machine that the client has reached."""
        host, port = self.connection.getsockname()[:2]
        return host_port(host, port)

    def _body(self) -> bytes | None:
        """The body; None if it was refused."""
        if refused := self._refused():
            self.send_error(*refused)
            return None
        size = int(self.headers.get("Content-Length", "0").strip()[-MOST_DIGITS:])
        body = self.rfile.read(size)
        if len(body) == size:
            return body
        self.send_error(400, f"a body of {len(body):,} bytes, {size:,} by its Content-Length")
        return None

    def _refused(self) -> tuple[int, str] | None:
        """Status and reason of a request whose head already shows that its body is refused."""
        lengths, most = self.headers.get_all("Content-Length", ["0"]), self.server.service.limits.body_bytes
        length = lengths[0].strip()
        if len(lengths) > 1:  # which of them counts is open, and a proxy may have chosen the other one
            return 400, "several Content-Length headers"
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return 411, "a body needs its Content-Length"
        if len(length.lstrip("0")) > MOST_DIGITS:
            return 413, f"a body of 10^{MOST_DIGITS} bytes or more, at most {most:,}"
        if (size := int(length[-MOST_DIGITS:])) > most:
            return 413, f"a body of {size:,} bytes, at most {most:,}"
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: scrapes come every second."""
