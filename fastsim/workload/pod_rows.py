"""Rows of pods in order of arrival, read in batches any number of times, held in full only on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import pyarrow as pa

from fastsim.errors import InputError, ScenarioError, reading
from fastsim.foundation import interrupts
from fastsim.foundation.columns.checksum import content_checksum
from fastsim.foundation.displays import Completable, html_table
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.parquet import one_line, open_parquet, parquet_batches, rechunked, write_parquet
from fastsim.workload import schema as s
from fastsim.workload.row_checks import checked, required_columns

if TYPE_CHECKING:
    import polars as pl

    from fastsim.kubernetes.snapshot import Snapshot

BATCH_ROWS = 65_536
"""Rows of a batch by default."""

FOR_ENGINES = frozenset({"known_checksum", "note_checksum", "found", "population", "source", "endless"})
"""Members that engines use."""
FORMER = frozenset({"write"})
"""Members that have another name now."""
TIDY_ROWS = 65_536
"""Workloads in memory of so many rows are brought into their canonical form once."""

Source = Callable[[int], Iterator[pa.RecordBatch]]
"""Opens the stream anew, in batches of about the given number of rows."""
Found = TypeVar("Found")


class Endless(Protocol):
    """Generated rows without end: batches come as long as they are read."""

    def take(self, count: int) -> pa.RecordBatch:
        """The next `count` rows."""

    def batches(self, jobs: int | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The next `jobs` rows in batches of `rows`; without end if `jobs` is None."""


class Held:
    """Immutable rows in memory: derived facts are computed once."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.good = False  # all rows were read and obey the rules
        self.sha256: str | None = None
        self.found: tuple[tuple[Any, ...], Any] | None = None
        self.tidy: tuple[int, list[pa.RecordBatch]] | None = None  # good rows as they are handed out, if few

    def __call__(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The stream anew, in batches of at most this many rows."""
        return iter(self.table.to_batches(max_chunksize=rows))


@whole_process
class PodRows(Completable):
    """Pods sorted by `submit_s` (seconds), which a workload is made of; every row is checked as it is read.

    They can be read any number of times; rows in memory are checked the first time only, so what they were made from
    must not change afterwards. An object is equal to itself alone; `checksum` compares rows.
    """

    for_engines = Completable.for_engines | FOR_ENGINES | FORMER

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        *,
        name: str = "workload",
        rows: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self.name = name
        self.rows = rows
        self.metadata: dict[str, str] = dict(metadata or {})
        self.snapshot: Snapshot | None = None  # the Kubernetes objects that the pods are of, as they stand
        self.population = ""  # checksum of the cluster's objects whose running pods are among the rows
        required_columns(name, columns)
        self.schema: pa.Schema = s.pod_schema(columns)

    @property
    def rates(self) -> str | None:
        """The rates of the jobs, as a value of the option `rates` of a run; None if the metadata has none."""
        return self.metadata.get("fastsim.rates")

    @classmethod
    def scan(cls, path: str | os.PathLike[str]) -> Self:
        """The pods of a canonical Parquet file, read lazily and in constant memory."""
        with open_parquet(path) as file:
            arrow, rows = file.schema_arrow, file.metadata.num_rows
            raw = file.metadata.metadata or {}
        try:
            metadata = {k.decode(): v.decode() for k, v in raw.items() if k.startswith(b"fastsim.")}
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: metadata", one_line(error), "UTF-8") from None
        _readable(str(path), metadata)
        columns = [name for name in arrow.names if name in s.POD_SCHEMA.names or s.is_native(name)]
        required_columns(str(path), arrow.names)
        source = partial(_file_batches, path, columns)
        return cls(source, columns, name=str(path), rows=rows, metadata=metadata)

    # ------------------------------------------------------------------ reading

    @property
    def source(self) -> Source:
        """The source of the rows, before they are checked."""
        return self._source

    @property
    def columns(self) -> list[str]:
        """Names of the columns present, in canonical order."""
        return list(self.schema.names)

    def __len__(self) -> int:
        if self.rows is None:
            expected = "a workload whose rows are known"
            raise InputError(f"len of workload {self.name!r}", "rows that come as they are read", expected)
        return self.rows

    def __bool__(self) -> bool:
        return True  # no test for None asks for the number of rows

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Checked record batches of exactly `rows` rows (the last may be shorter); call again to read again."""
        if rows < 1:
            raise ScenarioError("workload.batches: rows", rows, "1 or more")
        return rechunked(self._checked(rows), rows)

    def _read(self, rows: int) -> Iterator[pa.RecordBatch]:
        with reading(self.name, "pods that can be read"):
            yield from self._source(rows)

    def _checked(self, rows: int) -> Iterator[pa.RecordBatch]:
        held = self._source if isinstance(self._source, Held) else None
        tidy = None if held is None else held.tidy  # once: another thread may put other batches there
        if tidy is not None and tidy[0] == rows:
            yield from tidy[1]
            return
        few = held is not None and held.table.num_rows <= TIDY_ROWS
        batches: list[pa.RecordBatch] = []
        known_good = held is not None and held.good
        for batch in checked(partial(self._read, rows), lambda row: f"{self.name}:{row + 1}", known_good):
            interrupts.check()
            if few:
                batches.append(batch)
            yield batch
        if held is not None:
            held.good, held.tidy = True, (rows, batches) if few else None

    def table(self) -> pa.Table:
        """All pods at once."""
        return pa.Table.from_batches(self.batches(), schema=self.schema)

    def frame(self) -> pl.DataFrame:
        """All pods at once, as a polars frame."""
        import polars as pl

        return pl.DataFrame(pl.from_arrow(self.table()))

    def checksum(self) -> str:
        """SHA-256 of the rows; the same for the same pods however they are stored."""
        checksum = self.known_checksum or content_checksum(self.batches(), self.schema)
        self.note_checksum(checksum)
        return checksum

    @property
    def known_checksum(self) -> str | None:
        """The checksum, if it was worked out before and rows cannot have changed since."""
        return self._source.sha256 if isinstance(self._source, Held) else None

    def endless(self) -> Endless | None:
        """The endless stream that generated jobs are the beginning of; None for any other workload."""
        stream = getattr(self._source, "stream", None)
        cycle: Endless | None = None if stream is None else stream()
        return cycle

    def note_checksum(self, sha256: str) -> None:
        """Store the checksum of all rows, computed by a reader of them."""
        if isinstance(self._source, Held):
            self._source.sha256 = sha256

    def found(self, key: tuple[Any, ...], look: Callable[[], Found]) -> Found:
        """The result of ``look`` over all rows; for rows in memory the last result is cached, with its key."""
        if not isinstance(self._source, Held):
            return look()
        known = self._source.found  # once: another thread may put another answer there
        if known is None or known[0] != key:
            known = self._source.found = key, look()
        answer: Found = known[1]
        return answer

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes canonical Parquet, complete or not at all, and returns the number of rows."""
        stamp = {"fastsim.schema": "pods", "fastsim.schema_version": s.SCHEMA_VERSION, "fastsim.time_unit": "s"}
        return write_parquet(path, self.batches(), self.schema, self.metadata | stamp, s.SORTED_BY)

    def write(self, path: str | os.PathLike[str]) -> int:
        """The former name of :meth:`to_parquet`."""
        return self.to_parquet(path)

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, rows={self.rows}, columns={self.columns})"

    def _repr_html_(self) -> str:
        """Name, rows and columns with their types, for notebooks; no row is read."""
        rows = "an unknown number of" if self.rows is None else f"{self.rows:,}"
        columns = [[item.name, str(item.type)] for item in self.schema if item.name in self.columns]
        return html_table(f"Workload {self.name!r}: {rows} rows", ["column", "type"], columns)


def _file_batches(path: str | os.PathLike[str], columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    return parquet_batches(Path(path), columns, rows)


def _readable(where: str, metadata: Mapping[str, str]) -> None:
    kind = metadata.get("fastsim.schema", "pods")
    if kind != "pods":
        raise InputError(where, f"a table of {kind}", "a table of pods")
    version = metadata.get("fastsim.schema_version", s.SCHEMA_VERSION)
    if version.split(".")[0] != s.SCHEMA_VERSION.split(".")[0]:
        raise InputError(where, f"schema version {version}", f"version {s.SCHEMA_VERSION}", "convert the file again")
