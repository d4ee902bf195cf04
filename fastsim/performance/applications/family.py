"""A family of applications by name: read from tables and files, written, or the one that ships with fastsim."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import parquet_table
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.application_records import application_table, flat_rows
from fastsim.performance.applications.application_table import application_rows, applications, write_applications


@dataclass(frozen=True, eq=False)
class Applications(Mapping[str, Application]):
    """A family of applications by name."""

    known: Mapping[str, Application]
    name: str = "applications"

    def __getitem__(self, name: str) -> Application:
        if name not in self.known:
            raise InputError(f"{self.name}: application", repr(name), f"one of {', '.join(self.known)}")
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def __contains__(self, name: object) -> bool:
        return name in self.known

    @cached_property
    def gpu_models(self) -> tuple[str, ...]:
        """GPU models on which any of them was measured, sorted by name."""
        return tuple(sorted({model for app in self.known.values() for model in app.steps}))

    @classmethod
    def from_table(cls, table: pa.Table, name: str = "applications") -> Applications:
        """The applications of a table with the columns of `app_table.APP_SCHEMA`."""
        return cls(applications(table, name), name)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Applications:
        """The applications of a canonical Parquet file."""
        return cls.from_table(parquet_table(path, Work.TABLE_ROWS), str(path))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Applications:
        """The applications of canonical Parquet, or of a flat table, CSV or Parquet; see `application_records`."""
        return cls.from_table(application_table(path), str(path))

    @classmethod
    def default(cls) -> Applications:
        """The family that ships with fastsim: a model of training, not measurements."""
        return _default()

    def table(self) -> pa.Table:
        """The applications as rows of `app_table.APP_SCHEMA`."""
        return application_rows(self.known)

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes canonical Parquet, complete or not at all, and returns the number of applications."""
        return write_applications(self.table(), path)

    def flat(self) -> pa.Table:
        """The applications as a flat table, a row for each fact; see `application_records`."""
        return flat_rows(self.table())


@cache
def _default() -> Applications:
    from fastsim.performance.applications.default_applications import model_applications

    return Applications(model_applications(), "model of training")
