"""Tasks on a Dask distributed cluster: one that is there, or a local one of processes (extra ``dask``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from fastsim.errors import FastsimError
from fastsim.experiments.executors.executor import ATTEMPTS, BREATH_S, DIED, Executor, WorkerDied, outcome_of, unopened

AHEAD = 2
"""Items handed over for each thread of the cluster, so that none waits for the next."""


class DaskTasks(Executor):
    """Tasks of one thread each. ``address`` is a scheduler's; without it, ``workers`` processes of this machine.

    The scheduler itself gives an item whose worker dies to another one, ``ATTEMPTS`` times in all.
    """

    def __init__(self, workers: int, address: str | None = None) -> None:
        super().__init__()
        self.workers, self.address = workers, address
        self._client: Any = None
        self._cluster: Any = None

    def open(self) -> None:
        """Join the cluster, or start one."""
        try:
            import dask
            import distributed
        except ImportError:
            raise FastsimError('Dask needs the dask extra: pip install "fastsim-gpu[dask]"') from None
        dask.config.set({"distributed.scheduler.allowed-failures": ATTEMPTS - 1})
        try:
            if self.address is None:
                self._cluster = distributed.LocalCluster(
                    n_workers=self.workers, threads_per_worker=1, processes=True, dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )  # fmt: skip
            self._client = distributed.Client(self.address or self._cluster)
        except (OSError, TimeoutError, ValueError) as error:
            self.close()
            raise FastsimError(f"Dask at {self.address or 'a local cluster'}: {error}") from error
        self.slots = AHEAD * max(1, sum(self._client.nthreads().values()))

    def close(self, *, abort: bool = False) -> None:
        """Leave the cluster; one that was started here ends."""
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()
        self._client = self._cluster = None

    def _begun(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        if self._client is None:
            raise unopened()
        handle: Hashable = self._client.submit(outcome_of, task, item, pure=False)
        return handle

    def _finished(self, handles: Sequence[Any]) -> Iterable[Hashable]:
        import distributed

        try:
            done: set[Any] = distributed.wait(handles, timeout=BREATH_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return []
        return sorted(done, key=handles.index)

    def _answer(self, handle: Any) -> tuple[Any, Exception | None]:
        import distributed

        try:
            found: tuple[Any, Exception | None] = handle.result()
        except (distributed.KilledWorker, distributed.CancelledError):
            return None, WorkerDied(DIED)  # the scheduler has tried it again already
        except Exception as error:  # an answer that cannot be handed over
            return None, FastsimError(f"{type(error).__name__}: {error}")
        return found

    def _dropped(self, handles: Sequence[Any]) -> None:
        self._client.cancel(list(handles))
