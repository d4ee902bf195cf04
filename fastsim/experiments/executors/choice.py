"""The executor of a place: processes, threads, this thread alone, or a cluster of Ray or Dask."""

from __future__ import annotations

from fastsim.errors import ScenarioError
from fastsim.experiments.executors.executor import MAX_WORKERS, PLACES, Executor, Serial, Threads


def executor(workers: int, items: int | None = None, threads: bool = False) -> Executor:
    """An executor on this machine; with one worker or one item, this thread alone."""
    return executor_on("threads" if threads else "processes", workers, items)


def executor_on(
    place: str, workers: int = 1, items: int | None = None, address: str | None = None, most_s: float | None = None
) -> Executor:
    """The executor named ``place``, one of ``PLACES``.

    ``address`` is that of a cluster of Ray or Dask; without one, a local cluster of ``workers`` processes is started.
    A process that spends more than ``most_s`` seconds on one item is ended.
    """
    if place not in PLACES:
        raise ScenarioError("on", repr(place), f"one of {', '.join(PLACES)}")
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MAX_WORKERS:
        raise ScenarioError("workers", repr(workers), f"a whole number from 1 to {MAX_WORKERS}")
    if place == "ray":
        from fastsim.experiments.executors.distributed import RayTasks

        return RayTasks(workers, address)
    if place == "dask":
        from fastsim.experiments.executors.distributed import DaskTasks

        return DaskTasks(workers, address)
    if address is not None:
        raise ScenarioError("address", repr(address), f"none: {place} are on this machine")
    count = workers if items is None else min(workers, items)
    if place == "serial" or (count <= 1 and (place == "threads" or most_s is None)):
        return Serial()
    if place == "threads":
        return Threads(count)
    from fastsim.experiments.executors.processes import Processes

    return Processes(max(count, 1), most_s)
