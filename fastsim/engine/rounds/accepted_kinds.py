"""Jobs that accept some GPU models only: a kind of their own for each set of models, with a rate of 0 on the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.engine.rounds.options import Setting
from fastsim.performance.oracle import Oracle
from fastsim.workload import schema as s

RestrictedKind = tuple[int, tuple[bool, ...]]
"""Kind among those that accept every model, and by model whether this one does."""


@dataclass(frozen=True)
class AcceptedKinds:
    """The kinds of jobs that accept some models only, in the order of their positions behind all others."""

    models: tuple[str, ...]
    plain: int
    """Number of kinds that accept every model."""
    restricted: tuple[RestrictedKind, ...] = ()

    @classmethod
    def of(
        cls, batches: Iterable[tuple[pa.RecordBatch, npt.NDArray[np.int32]]], plain: int, models: tuple[str, ...]
    ) -> AcceptedKinds:
        """The kinds of the jobs of these batches; each comes with the kinds of its rows if they accepted every model.

        ``plain`` is the number of such kinds.
        """
        restricted: set[RestrictedKind] = set()
        for batch, kind in batches:
            restricted |= {pair for pair in _pairs(batch, kind, models) if not all(pair[1])}
        return cls(models, plain, tuple(sorted(restricted)))

    @property
    def origins(self) -> list[int]:
        """For every kind, the equal kind that accepts every model."""
        return [*range(self.plain), *(kind for kind, _ in self.restricted)]

    def widened(self, setting: Setting) -> Setting:
        """The setting with the rates of these kinds added."""
        if not self.restricted:
            return setting
        origins, oracle = self.origins, setting.oracle
        open__kg = np.ones((len(origins), len(self.models)), bool)
        open__kg[self.plain :] = [flags for _, flags in self.restricted]
        alone = np.where(open__kg, oracle.alone__kg[origins], 0.0)
        kinds = tuple(oracle.kinds[kind] for kind in origins)
        shared = _shared(oracle, origins, open__kg)
        wide = Oracle(kinds, oracle.gpu_models, alone, shared, oracle.name)
        return dataclasses.replace(setting, oracle=wide, reference__k=setting.reference__k[origins])

    def kinds(self, batch: pa.RecordBatch, kind: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The kind of every row: ``kind`` where the job accepts every model, else a restricted kind."""
        if not self.restricted:
            return kind
        index = {pair: self.plain + number for number, pair in enumerate(self.restricted)}
        return np.array([index.get(pair, pair[0]) for pair in _pairs(batch, kind, self.models)], np.int32)


def accepted_models(batch: pa.RecordBatch, models: Sequence[str]) -> npt.NDArray[np.bool_]:
    """By row and GPU model: whether the job may run on it."""
    accepted = np.ones((batch.num_rows, len(models)), bool)
    if s.GPU_MODELS in batch.schema.names and batch[s.GPU_MODELS].null_count < batch.num_rows:
        for row, names in enumerate(batch[s.GPU_MODELS].to_pylist()):
            if names is not None:
                accepted[row] = [model in names for model in models]
    return accepted


def _pairs(batch: pa.RecordBatch, kind: npt.NDArray[np.int32], models: Sequence[str]) -> list[RestrictedKind]:
    return list(zip(kind.tolist(), map(tuple, accepted_models(batch, models).tolist()), strict=True))


def _shared(oracle: Oracle, origins: list[int], open__kg: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Rates of sharing, 0 on the models that one of the two does not accept."""
    shared, shape = oracle.shared__kkg, (len(origins), *open__kg.shape)
    if not any(shared.strides) and not shared[:1, :1, :1].any():
        return np.broadcast_to(np.zeros(1), shape)  # one value for all cells stays one value
    both = open__kg[:, None, :] & open__kg[None, :, :]
    return np.where(both, shared[np.ix_(origins, origins)], 0.0)
