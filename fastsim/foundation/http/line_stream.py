"""Lines of an answer that goes on and on, such as the watch of an API server: those that have arrived, without waiting.

Both forms of an answer without a length are read: pieces (``Transfer-Encoding: chunked``), and bytes until the server
closes the connection. The address is reached directly, not through a proxy.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from contextlib import suppress
from email.message import Message
from urllib.parse import urlsplit

from fastsim.errors import InputError
from fastsim.foundation.parquet import one_line

PIECE = 1 << 16
"""Most bytes that are taken from a connection at a time."""
MOST_HEAD = 1 << 16
"""Longest head of an answer."""
MOST_LINE = 1 << 26
"""Longest line, and longest piece."""


class StreamBroken(Exception):
    """The connection ended in the middle of a line or piece, or what came is none."""


class LineStream:
    """The open answer to a GET; InputError if there is none within ``timeout_s``, or its status is not 200."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self.ended = False
        self._raw, self._body = bytearray(), bytearray()
        try:
            self._connection = _connected(address, timeout_s)
            try:
                head = self._head(time.monotonic() + timeout_s)
                self._refuse_failure(address, head)
                self._chunked = "chunked" in (_fields(head).get("Transfer-Encoding") or "").lower()
                self._connection.setblocking(False)
            except BaseException:
                self.close()
                raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise InputError(address, one_line(error), "an answer that goes on") from None

    def fileno(self) -> int:
        """The number of the connection, for `select`."""
        return self._connection.fileno()

    def close(self) -> None:
        """End the connection, also for those who wait for its next line."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def arrived(self) -> list[bytes]:
        """The lines that have arrived since the last call; StreamBroken once the connection has ended within one."""
        self._receive()
        if self._chunked:
            self._join_pieces()
        else:
            self._body += self._raw
            self._raw.clear()
        *lines, rest = bytes(self._body).split(b"\n")
        self._body = bytearray(rest)
        if len(rest) > MOST_LINE or (self.ended and (rest or self._raw)):
            raise StreamBroken
        return [line for line in lines if line.strip()]

    def _receive(self) -> None:
        """Take the bytes that are here."""
        try:
            while piece := self._connection.recv(PIECE):
                self._raw += piece
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            raise StreamBroken from None
        if self._chunked:  # a whole answer in pieces says so by an empty one
            self._join_pieces()
            if not self.ended:
                raise StreamBroken
        self.ended = True

    def _join_pieces(self) -> None:
        """Move whole pieces from the bytes that have arrived to the text."""
        while not self.ended:
            length, found, _ = self._raw.partition(b"\r\n")
            if not found:
                return
            try:
                size = int(bytes(length).partition(b";")[0], 16)
            except ValueError:
                raise StreamBroken from None
            begin = len(length) + 2
            if not 0 <= size <= MOST_LINE:
                raise StreamBroken
            if len(self._raw) < begin + size + 2:
                return
            self._body += self._raw[begin : begin + size]
            del self._raw[: begin + size + 2]
            self.ended = size == 0

    def _head(self, until_s: float) -> bytes:
        """The head of the answer; what came with it stays among the bytes that have arrived."""
        while b"\r\n\r\n" not in self._raw:
            self._connection.settimeout(max(until_s - time.monotonic(), 1e-3))
            piece = self._connection.recv(PIECE)
            if not piece or len(self._raw) > MOST_HEAD:
                raise ValueError("no head of an answer")
            self._raw += piece
        head, _, rest = bytes(self._raw).partition(b"\r\n\r\n")
        self._raw = bytearray(rest)
        return head

    @staticmethod
    def _refuse_failure(address: str, head: bytes) -> None:
        parts = head.partition(b"\r\n")[0].decode("iso-8859-1").split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/"):
            raise ValueError("no head of an answer")
        if parts[1] != "200":
            raise InputError(address, " ".join(parts[1:]), "an answer that goes on")


def _connected(address: str, timeout_s: float) -> socket.socket:
    """A connection to the server of an address, over which the request was sent."""
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    connection = socket.create_connection((host, port), timeout_s)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if secure:
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        head = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n"
        connection.sendall(head.encode("ascii"))
    except BaseException:
        connection.close()
        raise
    return connection


def _fields(head: bytes) -> Message:
    """The fields of the head of an answer."""
    return http.client.parse_headers(io.BytesIO(head.partition(b"\r\n")[2] + b"\r\n\r\n"))
