"""Speeds of jobs: steps per second of every kind of job on every GPU model, alone and sharing its GPUs.

A *kind* is a workload together with the number of GPUs it runs on. Rates are those of the whole gang, not of one GPU.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.option_texts import elements
from fastsim.foundation.parquet import arrow_table, parquet_table
from fastsim.performance.rate_table import RateArrays, csv_rates, rate_arrays, rate_rows, write_rates

POD = "pod"
"""Workload of everything that has no rates of its own."""

Floats = npt.NDArray[np.float64]
Kind = tuple[str, int]
"""Workload and number of GPUs."""


@whole_process
@dataclass(frozen=True, eq=False)
class Oracle:
    """Measured rates in steps/s; NaN where nothing was measured, 0 where the job cannot run.

    ``alone__kg[k, g]`` is the rate of kind ``k`` on GPU model ``g``. ``shared__kkg[k, l, g]`` is the rate of ``k``
    while every GPU of it is shared with kind ``l``; 0 where the two do not fit together. A rate model is equal to
    itself alone.
    """

    kinds: tuple[Kind, ...]
    gpu_models: tuple[str, ...]
    alone__kg: Floats
    shared__kkg: Floats
    name: str = "oracle"

    def __post_init__(self) -> None:
        k, g = len(self.kinds), len(self.gpu_models)
        for column, shape in (("alone__kg", (k, g)), ("shared__kkg", (k, k, g))):
            given = np.asarray(getattr(self, column), np.float64)
            # One value for all cells stays one value: tables of sharing grow with the square of the kinds.
            values = given if _single(given) else np.array(given, order="C")
            if values.shape != shape:
                raise InputError(f"{self.name}.{column}", f"shape {values.shape}", f"{shape}")
            sample = given[:1, :1] if _single(given) else values
            if (sample < 0).any() or np.isinf(sample).any():
                raise InputError(f"{self.name}.{column}", "a negative or infinite rate", "steps/s of 0 or more")
            values.flags.writeable = False
            object.__setattr__(self, column, values)

    # ------------------------------------------------------------------ makers

    @classmethod
    def from_table(cls, table: Any, name: str = "oracle") -> Oracle:
        """The rates of a table with the columns of `rate_table.RATE_SCHEMA`; kinds and models sorted by name.

        ``table`` may be anything that Arrow reads, such as a polars DataFrame. Rows with `consolidated` = false are not
        part of it.
        """
        return cls(*rate_arrays(arrow_table(table, name), name), name)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Oracle:
        """The rates of a CSV file (plain or .gz) with these columns."""
        return cls.from_table(csv_rates(path), str(path))

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Oracle:
        """The rates of a canonical Parquet file."""
        return cls.from_table(parquet_table(path, Work.TABLE_ROWS), str(path))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Oracle:
        """The rates of a Gavel throughput file (.json or .json.gz)."""
        from fastsim.performance.gavel_rates import import_rates

        return cls.from_table(import_rates(path), str(path))

    @classmethod
    def default(cls) -> Oracle:
        """The rates that ship with fastsim: a model of Gavel's 26 job types on K80, P100 and V100, not measurements."""
        return _default()

    # ------------------------------------------------------------------ reading and writing

    def table(self) -> pa.Table:
        """The rates as rows of `rate_table.RATE_SCHEMA`."""
        return rate_rows(RateArrays(self.kinds, self.gpu_models, self.alone__kg, self.shared__kkg), self.name)

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes canonical Parquet, complete or not at all, and returns the number of rows."""
        return write_rates(self.table(), path)

    @cached_property
    def kind_index(self) -> dict[Kind, int]:
        """Position of each kind; of equal ones that of the first."""
        return {kind: index for index, kind in reversed(tuple(enumerate(self.kinds)))}

    @cached_property
    def fastest_first(self) -> tuple[str, ...]:
        """GPU models by falling mean speed of the kinds every model runs, each against its own best rate."""
        known = self.alone__kg[(self.alone__kg > 0).all(axis=1)]
        relative = known / known.max(axis=1, keepdims=True)
        speed = relative.mean(axis=0) if len(known) else np.zeros(len(self.gpu_models))
        order = sorted(range(len(self.gpu_models)), key=lambda g: (-speed[g], self.gpu_models[g]))
        return tuple(self.gpu_models[g] for g in order)

    def restricted(self, gpu_models: Sequence[str]) -> Oracle:
        """The same kinds on these GPU models only, in this order; an unknown model is an InputError."""
        gpu_models = elements("GPU models", gpu_models, "a list of names", alone=(str,))
        for model in gpu_models:
            if model not in self.gpu_models:
                raise InputError(f"{self.name}: GPU model", repr(model), f"one of {', '.join(self.gpu_models)}")
        take: Any = [self.gpu_models.index(model) for model in gpu_models]
        alone, shared = self.alone__kg[:, take], self.shared__kkg
        if _single(shared):
            shared = np.broadcast_to(shared[:1, :1, :1], (*shared.shape[:2], len(take)))
        else:
            shared = shared[:, :, take]
        return Oracle(self.kinds, tuple(gpu_models), alone, shared, self.name)

    def without(self, absent__g: npt.NDArray[np.bool_]) -> Oracle:
        """The same rates, but no job can run on the models at these positions."""
        alone, shared = np.where(absent__g, 0.0, self.alone__kg), self.shared__kkg
        return Oracle(
            self.kinds,
            self.gpu_models,
            alone,
            shared if _single(shared) else np.where(absent__g, 0.0, shared),
            self.name,
        )


def _single(values: Floats) -> bool:
    """Whether all cells of a table are the same place in memory."""
    return values.size > 1 and not any(values.strides)


@cache
def _default() -> Oracle:
    from fastsim.performance.default_rates import model_rates

    return Oracle(*model_rates(), "rate model")
