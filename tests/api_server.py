"""A small API server: lists with a version, watches from a version on, and the ways in which both fail."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KINDS = {
    "/api/v1/nodes": "Node", "/api/v1/pods": "Pod",
    "/apis/resource.k8s.io/v1/resourceslices": "ResourceSlice",
    "/apis/resource.k8s.io/v1/deviceclasses": "DeviceClass",
    "/apis/resource.k8s.io/v1/resourceclaims": "ResourceClaim",
    "/apis/resource.k8s.io/v1/resourceclaimtemplates": "ResourceClaimTemplate",
}  # fmt: skip
"""Paths that are answered, with the kind of their objects."""
Object = dict[str, Any]


class ApiServer(ThreadingHTTPServer):
    """Objects by kind, namespace and name, with a log of what changed.

    ``forgotten`` is the version up to which the log is gone; ``watched`` whether there is a watch at all, ``chunked``
    whether its events come in pieces.
    """

    daemon_threads = True

    def __init__(self, objects: list[Object], chunked: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.chunked, self.watched, self.failing = chunked, True, False
        self.version, self.forgotten = 100, 0
        self.log: list[tuple[int, str, Object]] = []
        self.objects = {_key(item): item for item in objects}
        self.changed, self.open = threading.Condition(), set[_Handler]()
        self.lists, self.watches = list[str](), list[str]()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, *items: Object) -> None:
        """Add objects, or change those that are there; all watches have the events when it returns."""
        for item in items:
            kind = "MODIFIED" if _key(item) in self.objects else "ADDED"
            self._log(kind, item)
            self.objects[_key(item)] = item
        self._sent()

    def remove(self, *items: Object) -> None:
        """Delete objects."""
        for item in items:
            self.objects.pop(_key(item))
            self._log("DELETED", item)
        self._sent()

    def bookmark(self) -> None:
        """Say how far the watches are."""
        self._log("BOOKMARK", {"kind": "", "metadata": {}})
        self._sent()

    def forget(self) -> None:
        """Lose the log: watches from a version of before are answered with 410."""
        self.forgotten = self.version = self.version + 1

    def fail_watches(self, code: int) -> None:
        """Send an error on every open watch."""
        self._log("ERROR", {"kind": "Status", "code": code, "message": "too old resource version", "metadata": {}})
        self._sent()

    def cut(self, orderly: bool) -> None:
        """End all open watches: as the server does after a time, or in the middle of an event."""
        with self.changed:
            ending = set(self.open)
            for handler in ending:
                handler.ending = "orderly" if orderly else "cut"
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: not ending & self.open, 10)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: clients may go at any time."""

    def _log(self, kind: str, item: Object) -> None:
        with self.changed:
            self.version += 1
            item.setdefault("metadata", {})["resourceVersion"] = str(self.version)
            self.log.append((self.version, kind, json.loads(json.dumps(item))))
            self.changed.notify_all()

    def _sent(self) -> None:
        """Wait until every open watch has sent all events."""
        with self.changed:
            assert self.changed.wait_for(lambda: all(one.told >= self.version for one in self.open), 10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer
    told = 0
    ending = ""

    def answer(self) -> None:
        """A list, a watch, or a failure."""
        parts = urlsplit(self.path)
        kind, query = KINDS.get(parts.path), parse_qs(parts.query)
        if self.server.failing or kind is None:
            self._json({"kind": "Status", "message": "not now"}, 500 if self.server.failing else 404)
        elif "watch" not in query:
            self.server.lists.append(parts.path)
            self._json(self._list(kind), 200)
        elif not self.server.watched:
            self._json({"kind": "Status", "message": "watch is not allowed"}, 403)
        else:
            self.server.watches.append(parts.path)
            since = int(query["resourceVersion"][0])
            if since < self.server.forgotten:
                self._json({"kind": "Status", "code": 410, "message": "too old resource version"}, 410)
            else:
                self._watch(kind, since)

    do_GET = answer

    def _list(self, kind: str) -> Object:
        with self.server.changed:
            listed = [self.server.objects[key] for key in sorted(self.server.objects) if key[0] == kind]
            items = [{name: value for name, value in item.items() if name != "kind"} for item in listed]
            metadata = {"resourceVersion": str(self.server.version)}
        return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata, "items": items}

    def _json(self, value: Mapping[str, Any], status: int) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, kind: str, since: int) -> None:
        self.close_connection = True
        self.ending, self.told = "", since
        with self.server.changed:
            self.server.open.add(self)  # before the client can know of it
            try:
                self._head()
                while not self.ending:
                    self._tell(kind)
                    self.server.changed.notify_all()
                    self.server.changed.wait()
                self._end()
            except OSError:  # the client has gone
                pass
            finally:
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                self.server.open.discard(self)
                self.server.changed.notify_all()

    def _head(self) -> None:
        self.send_response(200)
        if self.server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _tell(self, kind: str) -> None:
        """Send the events since the last one."""
        for version, event, item in self.server.log:
            if version > self.told and item["kind"] in (kind, "", "Status"):
                body = item if item["kind"] else item | {"kind": kind}
                self._send(json.dumps({"type": event, "object": body}).encode() + b"\n")
        self.told = self.server.version

    def _send(self, text: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text) if self.server.chunked else text)
        self.wfile.flush()

    def _end(self) -> None:
        if self.ending == "cut":
            half = b'{"type": "ADDED", "obj'
            self.wfile.write(b"ff\r\n" + half if self.server.chunked else half)
        elif self.server.chunked:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _key(item: Object) -> tuple[str, str]:
    metadata = item["metadata"]
    return item["kind"], f"{metadata.get('namespace', '')}/{metadata['name']}"


@contextmanager
def serving(objects: list[Object], chunked: bool = True) -> Iterator[ApiServer]:
    """A server of these objects, until the end."""
    with ApiServer(objects, chunked) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.cut(orderly=True)
            server.shutdown()
            thread.join()
