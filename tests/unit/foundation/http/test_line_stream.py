"""Lines of an answer that goes on: in pieces of any size, and answers that break off or are none."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from fastsim.errors import InputError
from fastsim.foundation.http.line_stream import LineStream, StreamBroken

PATIENCE_S = 20.0
WHOLE, PIECES = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def server(*parts: bytes, pause_s: float = 0.0) -> Iterator[str]:
    """The address of a server that answers one request by these bytes, and closes the connection."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            for part in parts:
                connection.sendall(part)
                time.sleep(pause_s)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/watch?a=1"
        thread.join()


def read(stream: LineStream) -> list[bytes]:
    """All lines until the end."""
    lines: list[bytes] = []
    until_s = time.monotonic() + PATIENCE_S
    while not stream.ended and time.monotonic() < until_s:
        lines += stream.arrived()
        time.sleep(0.001)
    return lines


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE + b'{"a": 1}\n\n{"b": 2}\n',
        PIECES + b'9\r\n{"a": 1}\n\r\n9;note\r\n{"b": 2}\n\r\n0\r\n\r\n',
        PIECES + b'C\r\n{"a": 1}\n{"b\r\n6\r\n": 2}\n\r\n0\r\n\r\n',
    ],
)
@pytest.mark.parametrize("cut", [lambda data: [data], lambda data: [bytes([byte]) for byte in data]])
def test_lines_of_any_pieces(answer: bytes, cut: Callable[[bytes], list[bytes]]) -> None:
    with server(*cut(answer)) as address, closing(LineStream(address, PATIENCE_S)) as stream:
        assert read(stream) == [b'{"a": 1}', b'{"b": 2}']


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE + b'{"a": 1}\n{"b',
        PIECES + b'9\r\n{"a": 1}\n\r\n',
        PIECES + b"9\r\n{",
        PIECES + b"no number\r\n",
        PIECES + b"-1\r\n",
        PIECES + b"fffffffff\r\n",
    ],
)
def test_an_answer_that_breaks_off_is_known(answer: bytes) -> None:
    with server(answer) as address, closing(LineStream(address, PATIENCE_S)) as stream, pytest.raises(StreamBroken):
        read(stream)


def test_what_has_arrived_is_there_at_once_and_nothing_is_waited_for() -> None:
    with server(WHOLE, b"one\n", b"two\n", pause_s=0.3) as address, closing(LineStream(address, PATIENCE_S)) as stream:
        began_s = time.monotonic()
        first = stream.arrived()
        assert time.monotonic() - began_s < 0.2 and first in ([], [b"one"])
        assert first + read(stream) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 410 Gone\r\n\r\n", "410 Gone"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", "403 Forbidden"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no head of an answer"),
        (b"HTTP/1.1 200 OK\r\n", "no head of an answer"),
        (b"", "no head of an answer"),
    ],
)
def test_an_answer_that_is_none_is_an_error(answer: bytes, found: str) -> None:
    with server(answer) as address, pytest.raises(InputError, match=f"found {found}, expected an answer that goes on"):
        LineStream(address, PATIENCE_S)


def test_a_server_that_says_nothing_or_is_not_there_is_an_error() -> None:
    with server(pause_s=1.0) as address, pytest.raises(InputError, match=r"timed out|no head"):
        LineStream(address, 0.2)
    with pytest.raises(InputError, match="refused"):
        LineStream("http://127.0.0.1:9/", 1.0)
