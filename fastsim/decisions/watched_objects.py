"""Objects at a Kubernetes API server: listed once, then changed by the events of a watch.

Events that have arrived are taken in when the objects are asked for. A watch that the server ends begins again where
it was; after one that breaks, or whose beginning the server has forgotten (410), the objects are listed again. A kind
that the server lists but does not watch is listed again when the list is older than ``refresh_s``.
"""

from __future__ import annotations

import selectors
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from fastsim.errors import InputError, short
from fastsim.foundation.http.answers import answer_of
from fastsim.foundation.http.line_stream import LineStream, StreamBroken
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.kubernetes.objects import Manifest, manifests_in, mapping

PATHS = ("/api/v1/nodes", "/api/v1/pods")
"""Paths to read from an API server."""
DEVICE_PATHS = tuple(
    f"/apis/resource.k8s.io/v1/{name}"
    for name in ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")
)
"""Paths to read from an API server that has them."""
CHANGES = ("ADDED", "MODIFIED", "DELETED")
"""Types of events that change an object; a bookmark only says how far the watch is."""
UNREAD, HEARTBEAT = ("resourceVersion", "managedFields"), "lastHeartbeatTime"
"""Fields of the metadata, and of conditions, that say nothing about a cluster."""
ABSENT = ("403", "404")
"""Beginnings of answers of a server that lacks a path, or does not show it."""
GONE = "410"
"""Beginning of the answer to a watch from a version that the server has forgotten."""
WATCH_S = 240
"""Seconds after which the server is to end a watch."""
LATE_S = 30
"""Seconds that the end of a watch may be late; a connection that is gone without a word is known by that."""
HEALTHY_S = 5
"""Seconds after which a watch is not taken for one that fails at once."""
FIRST_PAUSE_S, MOST_PAUSE_S = 0.1, 30.0
"""Seconds before the server is asked again after a failure: the first time, and at most; they double in between."""
PUMP_S = 0.25
"""Longest time that the background waits for an event, after which it looks for new connections."""


class Pause:
    """The time until which a server that failed is left alone."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.until_s, self._next_s = clock, 0.0, FIRST_PAUSE_S

    @property
    def is_over(self) -> bool:
        """Whether the server may be asked."""
        return self.clock() >= self.until_s

    def begin(self) -> None:
        """The server has failed."""
        self.until_s = self.clock() + self._next_s
        self._next_s = min(2 * self._next_s, MOST_PAUSE_S)

    def forget(self) -> None:
        """The server answers."""
        self.until_s, self._next_s = 0.0, FIRST_PAUSE_S


class WatchedPath:
    """The objects of one path, by namespace and name."""

    def __init__(self, base: str, path: str, refresh_s: float, timeout_s: float, clock: Callable[[], float]) -> None:
        self.address, self.optional = f"{base}{path}", path in DEVICE_PATHS
        self.refresh_s, self.timeout_s, self.clock = refresh_s, timeout_s, clock
        self.objects: dict[str, Manifest] = {}
        self.changes = 0
        self.stream: LineStream | None = None
        self._version, self._since_s, self._heard = "", 0.0, False
        self._listed_s: float | None = None
        self._failure: InputError | None = None
        self._lists, self._watches = Pause(clock), Pause(clock)

    def update(self) -> None:
        """Take in what has arrived, and list the objects where that is due; InputError while the server fails."""
        self.take_in()
        if self._failure is not None and not self._lists.is_over:
            raise self._failure
        if self.stream is None and self._is_due():
            try:
                self._list()
            except InputError as error:
                self._failure = error
                self._lists.begin()
                raise
            self._failure = None
            self._lists.forget()

    def take_in(self) -> None:
        """Change the objects by the events that have arrived."""
        if self.stream is None:
            return
        try:
            for line in self.stream.arrived():
                self._apply(self._document(line))
                self._heard = True
            if self.clock() - self._since_s > WATCH_S + LATE_S:
                raise StreamBroken
        except (StreamBroken, InputError):
            self._end_watch()
            self._listed_s = None
            return
        if self.stream.ended:
            self._end_watch()
            self._watch()
            self._listed_s = None if self.stream is None else self._listed_s

    def _end_watch(self) -> None:
        """End the watch; one that failed at once is not tried again at once."""
        if self._heard or self.clock() - self._since_s > HEALTHY_S:
            self._watches.forget()
        else:
            self._watches.begin()
        self.close()

    def close(self) -> None:
        """End the connection of the watch."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    def _is_due(self) -> bool:
        """Whether the objects are to be listed: the list is too old, or a watch may begin again."""
        if self._listed_s is None or self.clock() - self._listed_s >= self.refresh_s:
            return True
        return bool(self._version) and self._watches.is_over

    def _list(self) -> None:
        """List the objects, and begin to watch them; a server without a watch, or without the path, has none."""
        self._listed_s, self._version = self.clock(), ""
        try:
            document = self._document(answer_of(self.address, "a Kubernetes API", timeout_s=self.timeout_s))
        except InputError as error:
            if not (self.optional and str(error.found).startswith(ABSENT)):
                self._listed_s = None
                raise
            document = None
        items = [] if document is None else manifests_in(self.address, document)
        listed = {_key(item): item for item in items}
        if self.objects or listed:
            self.changes += 1
        self.objects = listed
        if document is not None:
            self._version = str(mapping(document, "metadata", self.address).get("resourceVersion") or "")
            self._watch()

    def _document(self, body: bytes) -> Mapping[str, Any]:
        try:
            document = json_value(body)
        except (ValueError, RecursionError) as error:
            raise InputError(self.address, one_line(error), "JSON") from None
        if not isinstance(document, Mapping):
            raise InputError(self.address, short(document), "a list of objects")
        return document

    def _watch(self) -> None:
        """Watch from the known version on, if there is one and the server lets its objects be watched."""
        if not self._version or not self._watches.is_over:
            return
        asked = {"watch": 1, "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_S, "resourceVersion": self._version}
        self._since_s, self._heard = self.clock(), False
        try:
            self.stream = LineStream(f"{self.address}?{urlencode(asked)}", self.timeout_s)
        except InputError as error:
            if not str(error.found).startswith(GONE):
                self._watches.begin()

    def _apply(self, event: Mapping[str, Any]) -> None:
        """Change the objects by one event; one that is an error breaks the watch."""
        kind, body = event.get("type"), mapping(event, "object", self.address)
        if kind not in CHANGES and kind != "BOOKMARK":
            raise StreamBroken
        self._version = str(mapping(body, "metadata", self.address).get("resourceVersion") or self._version)
        for item in manifests_in(self.address, body) if kind in CHANGES else ():
            key = _key(item)
            if kind == "DELETED":
                self.changes += self.objects.pop(key, None) is not None
            elif key not in self.objects or _lasting(self.objects[key]) != _lasting(item):
                self.changes += 1
                self.objects[key] = item


class WatchedObjects:
    """All objects that a decision needs from an API server.

    A thread takes events in as they come, so that the server never has to wait for their reader.
    """

    def __init__(self, base: str, refresh_s: float, timeout_s: float, clock: Callable[[], float]) -> None:
        self.paths = [WatchedPath(base, path, refresh_s, timeout_s, clock) for path in (*PATHS, *DEVICE_PATHS)]
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def update(self) -> tuple[int, list[Manifest]]:
        """The number of changes so far and the objects, path by path in the order of a list, by namespace and name."""
        with self._lock:
            for path in self.paths:
                path.update()
            if self._thread is None and any(path.stream for path in self.paths):
                self._thread = threading.Thread(target=self._pump, daemon=True)
                self._thread.start()
            objects = [path.objects[key] for path in self.paths for key in sorted(path.objects)]
            return sum(path.changes for path in self.paths), objects

    def close(self) -> None:
        """End all connections."""
        self._closed.set()
        with self._lock:
            for path in self.paths:
                path.close()
        if self._thread is not None:
            self._thread.join()

    def _pump(self) -> None:
        while not self._closed.is_set():
            self._wait()
            with self._lock:
                for path in self.paths:
                    path.take_in()

    def _wait(self) -> None:
        """Wait until an event comes, but not for long."""
        with selectors.DefaultSelector() as selector:
            with self._lock:
                for path in self.paths:
                    if path.stream is not None:
                        selector.register(path.stream, selectors.EVENT_READ)
            if not selector.get_map():
                self._closed.wait(PUMP_S)
                return
            selector.select(PUMP_S)


def _lasting(item: Manifest) -> Mapping[str, Any]:
    """An object without its version and the times of heartbeats, which change every minute on each node."""
    metadata = {name: value for name, value in item.part("metadata").items() if name not in UNREAD}
    status = dict(item.part("status"))
    conditions = status.get("conditions")
    if isinstance(conditions, list):
        beats = (one if isinstance(one, Mapping) else {"": one} for one in conditions)
        status["conditions"] = [{name: value for name, value in one.items() if name != HEARTBEAT} for one in beats]
    return {**item.body, "metadata": metadata, "status": status}


def _key(item: Manifest) -> str:
    return f"{item.part('metadata').get('namespace') or ''}/{item.name}"
