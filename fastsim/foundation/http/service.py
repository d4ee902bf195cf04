"""A small service: one function answers each path at an address."""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from fastsim.errors import FastsimError, ScenarioError, short
from fastsim.foundation import interrupts
from fastsim.foundation.http.connections import BREATH_S, Limits, Listener, host_port
from fastsim.foundation.http.replies import Reply, Request, refusal

LOOPBACK = "127.0.0.1"
"""Default address of a service; only programs of this machine reach it."""
ALL_METHODS = ("GET", "HEAD", "OPTIONS", "POST")
"""Methods of a service as a whole."""


Route = Callable[[Request], Reply]
"""Answers one path; a FastsimError becomes a reply with status 400."""


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
            self._server = Listener(self)
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
        return f"http://{host_port(self.host, self.port)}"

    def run(self, over: Callable[[], bool] = lambda: False) -> None:
        """Serve until `over()` is true, then finish open requests; Ctrl-C cuts them off."""
        self._server.timeout = BREATH_S
        try:
            while not (over() or interrupts.pending()):
                self._server.handle_request()
                self._server.forget_refused()
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

    def answer(self, method: str, target: str, reached: str, body: bytes) -> Reply:
        """The reply to one request."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return refusal(400, "no such target")
        method = "GET" if method == "HEAD" else method
        known, methods = {path for _, path in self.routes}, self.methods(parts.path)
        if method == "OPTIONS" and (methods or target == "*"):
            return Reply(b"", status=204, allow=methods or ALL_METHODS)
        route = self.routes.get((method, parts.path))
        if route is None:
            if methods:
                return refusal(405, "no such method here", methods)
            return refusal(404, f"no such path; there is {', '.join(sorted(known))}")
        try:
            query = {name: values[-1] for name, values in parse_qs(parts.query, max_num_fields=20).items()}
            reply = route(Request(query, reached, body))
        except (FastsimError, ValueError) as error:
            return refusal(400, str(error))
        except Exception as error:  # the client gets an answer whatever is wrong with us
            print(f"fastsim: {parts.path}: {short(f'{type(error).__name__}: {error}', 200)}", file=sys.stderr)
            return refusal(500, f"internal error: {type(error).__name__}")
        self.answered += 1
        return reply
