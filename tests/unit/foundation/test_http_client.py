"""One request to a server: its whole answer, or one clear error (the rest is tested through those who ask)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.http_client import answer_of, base_address


class Handler(BaseHTTPRequestHandler):
    """Says what it was asked, or fails."""

    def answer(self) -> None:
        """One request."""
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
    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def test_answers(url: str) -> None:
    assert answer_of(f"{url}/here", "a test") == b"/here"
    assert answer_of(f"{url}/", "a test", {"a": 1, "b": "c d"}) == b"a=1&b=c+d"
    with pytest.raises(InputError, match="found 403 not you, expected an answer; is it a test"):
        answer_of(f"{url}/403", "a test")
    with pytest.raises(InputError, match="found more than 2 bytes"):
        answer_of(f"{url}/here", "a test", most_bytes=2)


def test_addresses() -> None:
    assert base_address("http://h:1/", "x", "y") == "http://h:1"
    for url in ("h:1", "file:///etc/passwd", "http://"):
        with pytest.raises(ScenarioError, match="expected an address such as y"):
            base_address(url, "x", "y")
