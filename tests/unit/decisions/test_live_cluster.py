"""A cluster as it is now, from files that change and from an API server."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import ClusterState, LiveSnapshot, left_out
from fastsim.errors import InputError, ScenarioError
from fastsim.kubernetes.objects import Manifest, manifests
from fastsim.workload.generators.kubernetes_dump import write_dump
from tests.objects import claim, claiming, device_class, gpu, request, resource_slice
from tests.unit.decisions.test_kube_extender import node, pod
from tests.unit.telemetry.test_exporter import Clock


class Api(ThreadingHTTPServer):
    """Serves nodes, pods and ``further`` kinds as an API server does: typed lists whose items have no kind."""

    objects: list[dict[str, Any]]
    further: Mapping[str, str] = MappingProxyType({})
    asked = 0
    half = False


class Handler(BaseHTTPRequestHandler):
    """Answers two paths."""

    def answer(self) -> None:
        """One request."""
        api: Any = self.server
        api.asked += 1
        kinds = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", **api.further}
        kind = kinds.get(self.path)
        items = [
            {key: value for key, value in item.items() if key != "kind"} for item in api.objects if item["kind"] == kind
        ]
        body = json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": items}).encode()
        self.send_response(200 if kind else 404)
        self.send_header("Content-Length", str(len(body) * (2 if api.half else 1)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("no_proxy", "*")
    with Api(("127.0.0.1", 0), Handler) as server:
        server.objects = [node("n1"), pod("a", 1, "n1"), pod("b")]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_server_is_asked_again_for_a_stale_snapshot(api: Api) -> None:
    clock = Clock()
    live = LiveSnapshot(f"http://127.0.0.1:{api.server_port}/", refresh_s=2, clock=clock)
    first = live.state()
    assert first.description == "1 nodes with 1 pods" and first.positions == {"n1": 0}
    api.objects.append(pod("c", 1, "n1"))
    clock.now += 1.9
    assert live.state() is first and api.asked == 6
    clock.now += 0.2
    assert live.state().description == "1 nodes with 2 pods" and live.state().number == 1


def test_broken_servers(api: Api) -> None:
    live = LiveSnapshot(f"http://127.0.0.1:{api.server_port}", refresh_s=0)
    live.state()
    api.half = True
    with pytest.raises(InputError, match="lacks"):
        live.state()
    with pytest.raises(InputError, match="404"):
        LiveSnapshot(f"http://127.0.0.1:{api.server_port}/elsewhere").state()
    with pytest.raises(InputError, match="complete answer of a Kubernetes API server"):
        LiveSnapshot("http://127.0.0.1:9").state()
    with pytest.raises(ScenarioError, match="--snapshot"):
        LiveSnapshot("http://").state()


def test_devices_and_claims_are_read_where_a_server_has_them(api: Api) -> None:
    """A server without the API for devices answers 404, and then nothing is claimed."""
    api.objects = [node("n1"), resource_slice("n1", gpu("g0")), device_class(), claim("c", request())]
    live = LiveSnapshot(f"http://127.0.0.1:{api.server_port}", refresh_s=0)
    assert not live.state().has_claims
    kinds = {"resourceslices": "ResourceSlice", "deviceclasses": "DeviceClass", "resourceclaims": "ResourceClaim"}
    api.further = {f"/apis/resource.k8s.io/v1/{path}": kind for path, kind in kinds.items()}
    assert live.state().has_claims
    service = Extender(live, "best_fit")
    assert service.filter({"Pod": claiming("p", claims=("c",)), "NodeNames": ["n1"]})["NodeNames"] == ["n1"]
    found = service.filter({"Pod": claiming("p", claims=("d",)), "NodeNames": ["n1"]})
    assert found["FailedAndUnresolvableNodes"] == {"n1": 'resourceclaim "d" not found'}


def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    path.write_text(json.dumps({"kind": "List", "items": [node("n1")]}))
    live = LiveSnapshot(str(tmp_path), refresh_s=0)
    first = live.state()
    assert live.state() is first
    path.write_text(json.dumps({"kind": "List", "items": [node("n1"), node("n2")]}))
    os.utime(path, ns=(1, 1))
    assert live.state().description == "2 nodes with 0 pods"
    path.unlink()
    with pytest.raises(InputError, match="no objects"):
        live.state()
    with pytest.raises(InputError, match="No such file"):
        LiveSnapshot(str(tmp_path / "none.json")).state()


def test_pods_that_hold_nothing(tmp_path: Path) -> None:
    over = pod("over", 1, "n1") | {"status": {"phase": "Succeeded"}}
    objects = [node("n1"), pod("a", 1, "n1"), over, pod("elsewhere", 1, "gone"), pod("waiting")]
    (tmp_path / "live.json").write_text(json.dumps({"kind": "List", "items": [*objects, {"kind": "NodePool"}]}))
    state = LiveSnapshot(str(tmp_path / "live.json")).state()
    assert [row["native_id"] for row in state.bound_rows] == ["ns/a"]
    assert left_out(state.notices) == "objects of kind NodePool (1)"


def test_a_state_that_follows_another_is_that_of_its_objects(tmp_path: Path) -> None:
    """Whatever is taken over: pods come, are bound and go, nodes and amounts of memory change."""
    write_dump(tmp_path / "now.json", 12, 90, seed=3)
    draw, objects = random.Random(5), manifests(tmp_path / "now.json")
    names = [item.name for item in objects if item.kind == "Node"]
    asked = next(item.body for item in objects if item.kind == "Pod" and not item.part("spec").get("nodeName"))
    state, taken = ClusterState(objects), 0
    for turn in range(40):
        assert state.typical is not None
        place = draw.randrange(len(objects))
        objects = changed(objects, place, draw, names)
        earlier, state = state, state.following(objects)
        taken += state.nodes is earlier.nodes
        fresh = ClusterState(objects)
        fresh.number = state.number
        assert state.node_rows == fresh.node_rows and state.bound_rows == fresh.bound_rows
        answers = [Extender(Standing(one), "fgd + preferred") for one in (state, fresh)]  # type: ignore[arg-type]
        found = [one.filter({"Pod": asked, "NodeNames": names}) for one in answers]
        assert found[0] == found[1] and found[0]["Error"] == "", turn
        points = [one.prioritize({"Pod": asked, "NodeNames": names}) for one in answers]
        assert points[0] == points[1]
    assert 10 < taken < 40


class Standing(NamedTuple):
    """A cluster that stands still."""

    moment: ClusterState

    def state(self) -> ClusterState:
        """As it is."""
        return self.moment


def changed(objects: list[Manifest], place: int, draw: random.Random, names: list[str]) -> list[Manifest]:
    """The objects with another one at a place, or without it."""
    item = objects[place]
    body = json.loads(json.dumps(item.body))
    if item.kind == "Pod" and draw.random() < 0.2:
        return [*objects[:place], *objects[place + 1 :]]
    if item.kind == "Pod":
        body["spec"]["nodeName"], body["status"] = draw.choice(names), {"phase": "Running"}
        if draw.random() < 0.3:
            body["spec"]["containers"][0]["resources"]["requests"]["memory"] = f"{draw.randrange(1, 9) * 100_000_000}"
    elif item.kind == "Node":
        body["metadata"].setdefault("labels", {})["turn"] = str(draw.random())
    return [*objects[:place], item._replace(body=body), *objects[place + 1 :]]
