"""The complete answer of a server to one request, or one clear error."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.parquet import one_line

MOST_BYTES = 1 << 28
"""Longest answer that is read."""


def base_address(url: str, where: str, example: str) -> str:
    """The address of a server without a slash at its end; ScenarioError if it is none."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ScenarioError(where, repr(url), f"an address such as {example}")
    return url.rstrip("/")


def answer_of(
    address: str, whose: str, asked: Mapping[str, object] | None = None, *, timeout_s: float = 30.0,
    most_bytes: int = MOST_BYTES,
) -> bytes:  # fmt: skip
    """What `whose` server, such as "a Prometheus", answers: to a form if something is `asked`, else to a plain request.

    Anything but a whole and successful answer is an InputError; `timeout_s` is the longest silence, seconds.
    """
    request = urllib.request.Request(address, None if asked is None else urlencode(asked).encode())
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            body: bytes = answer.read(most_bytes + 1)
            missing = answer.length or 0
    except urllib.error.HTTPError as error:
        raise InputError(address, f"{error.code} {_reason(error)}", "an answer", f"is it {whose}?") from None
    except (OSError, http.client.HTTPException) as error:
        raise InputError(address, one_line(error), f"a complete answer of {whose} server") from None
    if len(body) > most_bytes:
        raise InputError(address, f"more than {most_bytes:,} bytes", "a shorter answer", "ask for less at a time")
    if missing:
        raise InputError(address, f"an answer that lacks {missing:,} bytes", "a complete one", "ask again")
    return body


def _reason(error: urllib.error.HTTPError) -> str:
    """What the server says, if it says it in JSON."""
    try:
        told = json.loads(error.read(65_536))
        return failure(told) or str(told["message"])
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return str(error.reason)


def failure(told: Mapping[str, object]) -> str | None:
    """What went wrong, as an answer in JSON says it: the kind of error, if there is one, and the error."""
    parts = [str(told[name]) for name in ("errorType", "error") if told.get(name)]
    return " ".join(": ".join(parts).split()) or None
