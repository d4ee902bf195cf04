"""Executors on clusters of Ray (extra ``ray``) and Dask (extra ``dask``).

Each joins the cluster at an address, or starts a local one that ends with the executor. Workers of a local one look for
modules where this process does: not in the current folder, unless it does, too.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any

from fastsim.errors import FastsimError
from fastsim.experiments.executors.executor import ATTEMPTS, DIED, POLL_S, Executor, WorkerDied, outcome_of, unopened
from fastsim.experiments.executors.processes import SAFE_PATH, no_current_folder

RAY_AHEAD = 2
"""Items submitted for each CPU of a Ray cluster, so that none is idle."""
DASK_AHEAD = 2
"""Items submitted for each thread of a Dask cluster, so that none is idle."""


class RayTasks(Executor):
    """Tasks of one CPU each. ``address`` as in ``ray.init``; without it, ``workers`` CPUs of this machine."""

    def __init__(self, workers: int, address: str | None = None) -> None:
        super().__init__()
        self.workers, self.address = workers, address
        self._ray: Any = None
        self._owned = False
        self._remote: Any = None

    def open(self) -> None:
        """Join the cluster, or start one."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import ray
        except ImportError:
            raise FastsimError('Ray needs the ray extra: pip install "fastsim-gpu[ray]"') from None
        self._ray, self._owned = ray, not ray.is_initialized()
        if self._owned:
            self._join()
        # Retries of Ray itself would not be counted.
        self._remote = ray.remote(num_cpus=1, max_retries=0)(outcome_of)
        self.slots = RAY_AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))

    def _join(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
        local = {"num_cpus": self.workers, "address": "local", **quiet}
        options = local if self.address is None else {"address": self.address, "log_to_driver": False}
        try:
            with warnings.catch_warnings(), _same_places() as same:
                warnings.simplefilter("ignore")
                self._ray.init(**options, **({"runtime_env": same} if self.address is None else {}))
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = self.address or "a local cluster"
            raise FastsimError(f"Ray at {where}: {' '.join(str(error).split())}") from error

    def close(self, *, abort: bool = False) -> None:
        """Leave the cluster; end a local one."""
        if self._ray is not None and self._owned:
            self._ray.shutdown()
        self._ray = None

    def _begin(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        if self._ray is None:
            raise unopened()
        handle: Hashable = self._remote.remote(task, item)
        return handle

    def _finished(self, handles: Sequence[Any]) -> Iterable[Hashable]:
        ready: list[Hashable] = self._ray.wait(list(handles), num_returns=1, timeout=POLL_S)[0]
        return ready

    def _answer(self, handle: Any) -> tuple[Any, Exception | None]:
        from ray import exceptions

        try:
            outcome: tuple[Any, Exception | None] = self._ray.get(handle)
        except exceptions.RayTaskError as error:  # a return value that cannot be pickled
            return None, FastsimError(" ".join(str(error.cause).split()))
        except exceptions.RayError:
            raise WorkerDied(DIED) from None
        return outcome

    def _drop(self, handles: Sequence[Any]) -> None:
        for handle in handles:
            self._ray.cancel(handle, force=True)


@contextmanager
def _same_places() -> Iterator[dict[str, Any]]:
    """The environment of Ray's workers: this process's places of modules, in place of the current folder.

    Ray puts that folder first, except where workers have a folder of their own. It copies the folder, which ends with
    the block.
    """
    with TemporaryDirectory(prefix="fastsim-") as empty:
        places = os.pathsep.join(os.path.abspath(place) for place in sys.path)
        yield {"working_dir": empty, "env_vars": {"PYTHONPATH": places, SAFE_PATH: "1"}}


class DaskTasks(Executor):
    """Tasks of one thread each. ``address`` is a scheduler's; without it, ``workers`` processes of this machine.

    The scheduler itself retries an item whose worker dies, ``ATTEMPTS`` times in all.
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
        # Workers that take the place of dead ones start later.
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{SAFE_PATH}": "1"})
        try:
            if self.address is None:
                with no_current_folder():
                    self._cluster = distributed.LocalCluster(
                        n_workers=self.workers, threads_per_worker=1, processes=True, dashboard_address=None,
                        silence_logs=logging.CRITICAL,
                    )  # fmt: skip
            self._client = distributed.Client(self.address or self._cluster)
        except (OSError, TimeoutError, ValueError) as error:
            self.close()
            raise FastsimError(f"Dask at {self.address or 'a local cluster'}: {error}") from error
        self.slots = DASK_AHEAD * max(1, sum(self._client.nthreads().values()))

    def close(self, *, abort: bool = False) -> None:
        """Leave the cluster; end a local one.

        A worker that Dask cannot end in its time ends with this process: all answers are here.
        """
        for part in (self._client, self._cluster):
            if part is not None:
                with suppress(OSError):
                    part.close()
        self._client = self._cluster = None

    def _begin(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        if self._client is None:
            raise unopened()
        handle: Hashable = self._client.submit(outcome_of, task, item, pure=False)
        return handle

    def _finished(self, handles: Sequence[Any]) -> Iterable[Hashable]:
        import distributed

        try:
            done: set[Any] = distributed.wait(handles, timeout=POLL_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return []
        return sorted(done, key=handles.index)

    def _answer(self, handle: Any) -> tuple[Any, Exception | None]:
        import distributed

        try:
            outcome: tuple[Any, Exception | None] = handle.result()
        except (distributed.KilledWorker, distributed.CancelledError):
            return None, WorkerDied(DIED)  # the scheduler has tried it again already
        except Exception as error:  # a return value that cannot be pickled
            return None, FastsimError(f"{type(error).__name__}: {error}")
        return outcome

    def _drop(self, handles: Sequence[Any]) -> None:
        self._client.cancel(list(handles))
