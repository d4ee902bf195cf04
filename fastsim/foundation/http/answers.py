"""Answers of servers: complete and successful, or an error that says what came instead."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line

MOST_BYTES = 1 << 28
"""Longest answer that is read."""


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


def _reason(error: urllib.error.HTTPError) -> str:
    """The server's reason: from its JSON body, else from the status line."""
    try:
        document = json_value(error.read(65_536))
        return failure(document) or str(document["message"])
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return str(error.reason)
