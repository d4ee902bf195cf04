"""Requests and replies of a service; a refusal is JSON, ``{"error": TEXT}``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of metrics as Prometheus scrapes them."""


class Request(NamedTuple):
    """A request: values of the query by name, the address of this machine that the client has reached, the body.

    The address is ``HOST:PORT`` of the connection, not the Host header, which a client may choose.
    """

    query: Mapping[str, str]
    reached: str = ""
    body: bytes = b""


class Reply(NamedTuple):
    """A reply: body, content type, status code; allowed methods in replies to OPTIONS or to a refused method."""

    body: bytes
    type: str = PLAIN
    status: int = 200
    allow: tuple[str, ...] = ()


def json_reply(value: object, status: int = 200) -> Reply:
    """A reply in JSON."""
    return Reply(json.dumps(value).encode(), JSON, status)  # ASCII: half a surrogate pair stays an escape


def refusal(status: int, text: str, allow: tuple[str, ...] = ()) -> Reply:
    """The reply to a request that is refused or fails: its reason under the key ``error``."""
    return json_reply({"error": text}, status)._replace(allow=allow)
