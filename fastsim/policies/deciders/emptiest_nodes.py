"""Nodes of jobs that keep them while their size stays; others take the emptiest node, and the rest from the next.

This is the placement of the policies that the simulator of the Pollux paper compares with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Nodes = tuple[int, ...]
"""The node of each GPU of a job."""


def emptiest_first(
    sizes: Iterable[tuple[int, int]], kept: Mapping[int, Nodes], gpus__n: Sequence[int]
) -> dict[int, Nodes]:  # fmt: skip
    """Nodes of each job: ``sizes`` are jobs and their GPUs in the order in which they choose, ``kept`` those that stay.

    Among nodes with as many free GPUs the first one is taken. The sizes must fit.
    """
    free, places = list(gpus__n), dict(kept)
    for nodes in kept.values():
        for node in nodes:
            free[node] -= 1
    for job, gpus in sizes:
        if job in kept:
            continue
        nodes__g: list[int] = []
        while len(nodes__g) < gpus:
            node = max(range(len(free)), key=free.__getitem__)
            taken = min(free[node], gpus - len(nodes__g))
            nodes__g += [node] * taken
            free[node] -= taken
        places[job] = tuple(nodes__g)
    return places
