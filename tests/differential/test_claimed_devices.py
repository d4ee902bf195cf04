"""Pods with claims for devices beside a plain allocator that tries every assignment of devices to their requests.

Pods are placed only where all of them can have their devices together. Where sets of devices are equal, apart or inside
each other, exactly the pods are placed that the allocator finds devices for, one after the other.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.kubernetes.pod_rules.resource_claims import PARTLY, UNEQUAL
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import (
    allocation,
    claim,
    claiming,
    cluster_of,
    device,
    device_class,
    manifest,
    node,
    request,
    resource_slice,
    template,
    workload_of,
)
from tests.reference.device_allocation import Part, Wish, satisfiable
from tests.strategies import scenarios_per_run

DRIVER = "dev.example.com"
DOMAIN = f"device.attributes['{DRIVER}']"
MEANT: dict[str, Any] = {
    "true": lambda one: True,
    f"{DOMAIN}.model == 'x'": lambda one: one["model"] == "x",
    f"{DOMAIN}.model != 'x'": lambda one: one["model"] != "x",
    f"{DOMAIN}.size >= 2": lambda one: one["size"] >= 2,
    f"{DOMAIN}.size >= 3 && {DOMAIN}.model == 'x'": lambda one: one["size"] >= 3 and one["model"] == "x",
    f"{DOMAIN}.root in ['r0']": lambda one: one["root"] == "r0",
}
"""Selectors, and which devices they mean."""
LAMINAR = [text for text in MEANT if "size >= 2" not in text and "root" not in text]
"""Selectors of which any two mean sets that are equal, apart or inside each other."""

devices = st.fixed_dictionaries({
    "model": st.sampled_from("xy"), "size": st.integers(1, 3), "root": st.sampled_from(["r0", "r1"]),
})  # fmt: skip
nodes = st.lists(st.lists(devices, min_size=0, max_size=5), min_size=1, max_size=3)


def requests_of(selectors: list[str], most: int = 3) -> Any:
    return st.tuples(st.sampled_from(selectors), st.integers(1, most))


def cluster(found: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Nodes with their devices, and the class of all of them."""
    objects: list[dict[str, Any]] = [device_class("any", "true")]
    for number, listed in enumerate(found):
        own = [device(f"d{place}", attributes=one) for place, one in enumerate(listed)]
        objects += [node(f"n{number}"), resource_slice(f"n{number}", *own, driver=DRIVER)]
    return objects


def placed(objects: list[dict[str, Any]]) -> tuple[dict[str, str | None], Snapshot]:
    """The node of every pod by name."""
    snapshot = Snapshot([manifest(item) for item in objects])
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    found = result.placements.select("native_id", "node").iter_rows()
    return {name.removeprefix("default/"): where for name, where in found}, snapshot


def parts_of(listed: list[dict[str, Any]]) -> dict[str, Part]:
    return {f"d{place}": Part(one) for place, one in enumerate(listed)}


def wish_of(asked: Any, listed: list[dict[str, Any]], rules: Any = ()) -> Wish:
    """The claim of requests with alternatives on a node."""
    sets = [
        [(frozenset(f"d{place}" for place, one in enumerate(listed) if MEANT[text](one)), count) for text, count in one]
        for one in asked
    ]  # fmt: skip
    return Wish(sets, rules)


def templates(claims: Any) -> list[dict[str, Any]]:
    """A template and a pod for every claim: requests with alternatives, and constraints."""
    objects: list[dict[str, Any]] = []
    for number, (asked, rules) in enumerate(claims):
        listed = []
        for place, one in enumerate(asked):
            bodies = [{"name": f"s{n}", **request("r", "any", text, **amount(count))["exactly"]}
                      for n, (text, count) in enumerate(one)]  # fmt: skip
            name = f"r{place}"
            if len(bodies) > 1:
                listed.append({"name": name, "firstAvailable": bodies})
            else:
                listed.append(request(name, "any", one[0][0], **amount(one[0][1])))
        told = [{("distinctAttribute" if distinct else "matchAttribute"): f"{DRIVER}/{key}"} for key, distinct in rules]
        more = {"constraints": told} if told else {}
        objects += [template(f"t{number}", *listed, **more), claiming(f"p{number}", f"t{number}")]
    return objects


def amount(count: int | None) -> dict[str, Any]:
    return {"allocationMode": "All"} if count is None else {"count": count}


Held = list[tuple[int, list[str]]]
"""Nodes and devices of claims that pods on nodes have."""


def holding(held: Held) -> list[dict[str, Any]]:
    """Running pods with claims that have these devices, two devices a claim at most."""
    objects: list[dict[str, Any]] = []
    for number, (where, names) in enumerate(held):
        pairs = [(f"n{where}", name) for name in names]
        status = allocation(*pairs, driver=DRIVER, users=(f"r{number}",))
        running = claiming(f"r{number}", claims=(f"c{number}",), nodeName=f"n{where}", status={"phase": "Running"})
        objects += [claim(f"c{number}", request("r", "any"), status=status), running]
    return objects


@st.composite
def held_devices(draw: st.DrawFn, found: list[list[dict[str, Any]]]) -> Held:
    """Some devices of some nodes, one or two a claim."""
    held: Held = []
    for number, listed in enumerate(found):
        free = draw(st.lists(st.sampled_from(range(len(listed))), unique=True, max_size=3)) if listed else []
        names = [f"d{place}" for place in free]
        held += [(number, names[start : start + 2]) for start in range(0, len(names), 2)]
    return held


def check_feasible(
    found: list[list[dict[str, Any]]], claims: Any, where: dict[str, str | None], held: Held | None = None
) -> None:
    """What stands on a node can be had there together, and who runs stays."""
    for number, listed in enumerate(found):
        taken = [name for place, names in held or () if place == number for name in names]
        here = [
            wish_of(asked, listed, rules) for p, (asked, rules) in enumerate(claims) if where[f"p{p}"] == f"n{number}"
        ]
        assert satisfiable(here, parts_of(listed), {}, taken), (number, where)
    assert all(where[f"r{number}"] == f"n{place}" for number, (place, _) in enumerate(held or ()))


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(st.lists(requests_of(LAMINAR), min_size=1, max_size=2), min_size=1, max_size=5))
def test_sets_inside_each_other_are_exact(found: Any, asked: Any) -> None:
    """On one node the pods are those that the allocator can add one after the other."""
    claims = [([[one] for one in requests], ()) for requests in asked]
    where, _ = placed([*cluster(found[:1]), *templates(claims)])
    here: list[Wish] = []
    for number, (requests, _) in enumerate(claims):
        wish = wish_of(requests, found[0])
        fits = satisfiable([*here, wish], parts_of(found[0]), {})
        assert (where[f"p{number}"] is not None) == fits, (number, where)
        here += [wish] if fits else []


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(st.lists(requests_of([*MEANT]), min_size=1, max_size=2), min_size=1, max_size=6))
def test_any_sets_are_feasible(found: Any, asked: Any) -> None:
    claims = [([[one] for one in requests], ()) for requests in asked]
    where, snapshot = placed([*cluster(found), *templates(claims)])
    check_feasible(found, claims, where)
    alone = [wish_of(requests, listed) for requests, _ in claims[:1] for listed in found]
    lone = any(satisfiable([wish], parts_of(listed), {}) for wish, listed in zip(alone, found, strict=True))
    assert lone == (where["p0"] is not None) or PARTLY in snapshot.notices


RULES = st.sampled_from([(), (("root", False),), (("root", True),), (("model", False),)])
WISHES = st.tuples(st.lists(st.lists(requests_of([*MEANT], 2), min_size=1, max_size=1), min_size=1, max_size=2), RULES)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(WISHES, min_size=1, max_size=5))
def test_constraints_are_feasible(found: Any, claims: Any) -> None:
    where, _ = placed([*cluster(found), *templates(claims)])
    check_feasible(found, claims, where)


ALL_OR_SOME = st.tuples(st.sampled_from([*MEANT]), st.sampled_from([None, 1, 2]))


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(ALL_OR_SOME, min_size=1, max_size=5))
def test_requests_for_all_devices_are_feasible(found: Any, asked: Any) -> None:
    claims = [([[one]], ()) for one in asked]
    where, _ = placed([*cluster(found), *templates(claims)])
    check_feasible(found, claims, where)


ALTERNATIVES = st.lists(requests_of([*MEANT], 2), min_size=2, max_size=3)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(st.lists(ALTERNATIVES, min_size=1, max_size=2), min_size=1, max_size=4))
def test_alternatives_are_feasible(found: Any, asked: Any) -> None:
    claims = [(requests, ()) for requests in asked]
    where, snapshot = placed([*cluster(found), *templates(claims)])
    check_feasible(found, claims, where)
    if len(asked) == len(asked[0]) == 1:
        fits = any(satisfiable([wish_of(asked[0], listed)], parts_of(listed), {}) for listed in found)
        assert fits == (where["p0"] is not None) or UNEQUAL in snapshot.notices


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(st.lists(st.sampled_from(["whole", "half", "third", "quarter"]), min_size=1, max_size=8), st.integers(1, 2),
       st.integers(3, 12))  # fmt: skip
def test_partitions_are_feasible(asked: Any, gpus: int, slices: int) -> None:
    """Parts of a GPU take slices of it, whatever their place; a whole one takes all of them."""
    sizes = {"whole": slices, "half": max(slices // 2, 1), "third": max(slices // 3, 1), "quarter": max(slices // 4, 1)}
    listed, parts = [], {}
    for g in range(gpus):
        for kind, size in sizes.items():
            for place in range(slices // size):
                takes = [{"counterSet": f"g{g}", "counters": {"slices": {"value": str(size)}}}]
                listed.append(device(f"{kind}-{g}-{place}", attributes={"kind": kind}, consumesCounters=takes))
                parts[listed[-1]["name"]] = Part({"kind": kind}, {f"g{g}": size})
    sets = [{"name": f"g{g}", "counters": {"slices": {"value": str(slices)}}} for g in range(gpus)]
    objects = [node("n0"), resource_slice("n0", *listed, driver=DRIVER, sharedCounters=sets)]
    objects += [device_class(kind, f"{DOMAIN}.kind == '{kind}'") for kind in sizes]
    objects += [template(kind, request("r", kind)) for kind in sizes]
    where, _ = placed([*objects, *(claiming(f"p{number}", kind) for number, kind in enumerate(asked))])
    meant = {kind: frozenset(name for name in parts if name.startswith(kind)) for kind in sizes}
    here = [Wish([[(meant[kind], 1)]]) for number, kind in enumerate(asked) if where[f"p{number}"]]
    assert satisfiable(here, parts, {f"g{g}": slices for g in range(gpus)})
    assert where["p0"] == "n0"


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(st.lists(requests_of(LAMINAR), min_size=1, max_size=2), min_size=1, max_size=4), st.data())
def test_sets_inside_each_other_are_exact_beside_what_runs(found: Any, asked: Any, data: Any) -> None:
    claims, held = [([[one] for one in requests], ()) for requests in asked], data.draw(held_devices(found[:1]))
    where, _ = placed([*cluster(found[:1]), *templates(claims), *holding(held)])
    check_feasible(found[:1], [], where, held)
    here: list[Wish] = []
    taken = [name for _, names in held for name in names]
    for number, (requests, _) in enumerate(claims):
        wish = wish_of(requests, found[0])
        fits = satisfiable([*here, wish], parts_of(found[0]), {}, taken)
        assert (where[f"p{number}"] is not None) == fits, (number, where)
        here += [wish] if fits else []


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(nodes, st.lists(WISHES, max_size=3), st.lists(ALL_OR_SOME, max_size=3),
       st.lists(st.lists(ALTERNATIVES, min_size=1, max_size=1), max_size=2), st.data())  # fmt: skip
def test_all_kinds_are_feasible_beside_what_runs(found: Any, ruled: Any, every: Any, either: Any, data: Any) -> None:
    claims = [*ruled, *(([[one]], ()) for one in every), *((requests, ()) for requests in either)]
    held = data.draw(held_devices(found))
    where, _ = placed([*cluster(found), *templates(claims), *holding(held), *([] if claims else [claiming("x")])])
    check_feasible(found, claims, where, held)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(st.lists(st.sampled_from(["whole", "half", "quarter"]), min_size=1, max_size=6),
       st.lists(st.sampled_from(["whole-0-0", "half-0-1", "quarter-0-0", "quarter-0-3", "half-1-0", "quarter-1-2"]),
                unique=True, max_size=3))  # fmt: skip
def test_partitions_are_feasible_beside_what_runs(asked: Any, wanted: Any) -> None:
    """Two GPUs of 8 slices: what runs keeps its parts, and what is placed beside it has counters that suffice."""
    sizes, parts, listed = {"whole": 8, "half": 4, "quarter": 2}, {}, []
    for g in range(2):
        for kind, size in sizes.items():
            for place in range(8 // size):
                takes = [{"counterSet": f"g{g}", "counters": {"slices": {"value": str(size)}}}]
                listed.append(device(f"{kind}-{g}-{place}", attributes={"kind": kind}, consumesCounters=takes))
                parts[listed[-1]["name"]] = Part({"kind": kind}, {f"g{g}": size})
    counters = {"g0": 8, "g1": 8}
    held: Held = []
    for name in wanted:
        if satisfiable([], parts, counters, [*(one for _, names in held for one in names), name]) and all(
            sum(parts[one].takes.get(key, 0) for one in [name, *(n for _, names in held for n in names)]) <= most
            for key, most in counters.items()
        ):
            held.append((0, [name]))
    sets = [{"name": key, "counters": {"slices": {"value": "8"}}} for key in counters]
    objects = [
        node("n0"),
        resource_slice("n0", *listed, driver=DRIVER, sharedCounters=sets),
        device_class("any", "true"),
    ]
    objects += [device_class(kind, f"{DOMAIN}.kind == '{kind}'") for kind in sizes]
    objects += [template(kind, request("r", kind)) for kind in sizes]
    where, _ = placed([*objects, *holding(held), *(claiming(f"p{number}", kind) for number, kind in enumerate(asked))])
    meant = {kind: frozenset(name for name in parts if name.startswith(kind)) for kind in sizes}
    here = [Wish([[(meant[kind], 1)]]) for number, kind in enumerate(asked) if where[f"p{number}"]]
    taken = [name for _, names in held for name in names]
    assert satisfiable(here, parts, counters, taken)
    assert all(where[f"r{number}"] == "n0" for number in range(len(held)))
    first = satisfiable([Wish([[(meant[asked[0]], 1)]])], parts, counters, taken)
    assert (where["p0"] is not None) == first
