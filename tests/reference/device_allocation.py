"""Whether devices of one node satisfy several claims at once: every assignment is tried, in plain Python.

A claim is a list of requests, each a list of alternatives: the names of the devices that are meant, and their number,
or None for all of them. Rules name an attribute that is equal, or distinct, over the devices of all requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A device: attributes by name, and what it takes of counters."""

    attributes: Mapping[str, Any]
    takes: Mapping[str, int] = {}


class Wish(NamedTuple):
    """A claim: alternatives of each request, and rules: attribute, and whether its values must be distinct."""

    requests: Sequence[Sequence[tuple[frozenset[str], int | None]]]
    rules: Sequence[tuple[str, bool]] = ()


def satisfiable(
    wishes: Sequence[Wish], parts: Mapping[str, Part], counters: Mapping[str, int], held: Iterable[str] = ()
) -> bool:
    """Whether all wishes can be had together, beside the devices that are ``held`` already."""
    return any(True for _ in _assigned(wishes, parts, frozenset(held), counters))


def _assigned(
    wishes: Sequence[Wish], parts: Mapping[str, Part], taken: frozenset[str], counters: Mapping[str, int]
) -> Iterator[frozenset[str]]:
    if not wishes:
        yield taken
        return
    for chosen in _chosen(wishes[0], 0, parts, frozenset(), taken):
        if _enough(taken | chosen, parts, counters):
            yield from _assigned(wishes[1:], parts, taken | chosen, counters)


def _chosen(
    wish: Wish, number: int, parts: Mapping[str, Part], own: frozenset[str], taken: frozenset[str]
) -> Iterator[frozenset[str]]:
    """Every set of devices that one wish can have."""
    if number == len(wish.requests):
        if all(_obeyed([parts[name].attributes.get(key) for name in sorted(own)], distinct)
               for key, distinct in wish.rules):  # fmt: skip
            yield own
        return
    for meant, count in wish.requests[number]:
        here = sorted(meant & parts.keys())
        wanted = len(here) if count is None else count
        if count is None and (not here or not taken.isdisjoint(here) or not own.isdisjoint(here)):
            continue
        free = [name for name in here if name not in taken | own]
        for picked in combinations(free, wanted):
            yield from _chosen(wish, number + 1, parts, own | {*picked}, taken)


def _obeyed(values: Sequence[Any], distinct: bool) -> bool:
    if None in values:
        return False
    return len(set(values)) == len(values) if distinct else len(set(values)) <= 1


def _enough(names: frozenset[str], parts: Mapping[str, Part], counters: Mapping[str, int]) -> bool:
    return all(
        sum(parts[name].takes.get(counter, 0) for name in names) <= amount for counter, amount in counters.items()
    )
