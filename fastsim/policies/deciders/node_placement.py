"""Which nodes jobs of known sizes stand on: largest first, whole nodes first, on around the ring of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from fastsim.errors import PolicyError


def placed(sizes: Sequence[int], free: Sequence[int]) -> list[list[int]]:
    """For each job the node of each of its GPUs, given the free GPUs of each node; jobs of one size keep their order.

    A job takes nodes that are free as a whole, as many as it fills, and the rest wherever the next free GPUs are. Each
    search goes on where the last one ended.
    """
    left, count = list(free), len(free)
    if sum(sizes) > sum(left):
        raise PolicyError("placement", f"{sum(sizes)} GPUs asked for", f"at most the {sum(left)} free ones")
    whole = max(left, default=0)
    found: list[list[int]] = [[] for _ in sizes]
    at = 0
    for job in sorted(range(len(sizes)), key=lambda job: -sizes[job]):
        nodes, at = _whole_nodes(left, sizes[job] // whole if whole else 0, whole, at)
        found[job] = [node for node in nodes for _ in range(whole)]
        while len(found[job]) < sizes[job]:
            taken = min(left[at], sizes[job] - len(found[job]))
            found[job] += [at] * taken
            left[at] -= taken
            at = (at + 1) % count
    return found


def _whole_nodes(left: list[int], wanted: int, whole: int, at: int) -> tuple[list[int], int]:
    """So many free nodes from ``at`` on, fewer if there are not as many; and where the search ended."""
    nodes: list[int] = []
    for _ in range(len(left)):
        if len(nodes) == wanted:
            break
        if left[at] == whole:
            nodes.append(at)
            left[at] = 0
        at = (at + 1) % len(left)
    return nodes, at
