"""Storage of a sweep's runs: a folder for each, complete or absent, together one hive-style Parquet dataset.

A run's folder is named after its values, as in ``policy=fgd/seed=0``, so that polars, duckdb and others read any table
of all runs as one, with those names as columns: ``scan_parquet("runs/policy=*/seed=*/jobs.parquet")``.
"""

from __future__ import annotations

import io
import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.engine.result import FRAMES, Result, write_table
from fastsim.errors import FastsimError, ResultError
from fastsim.foundation.folder_lock import held
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import replacing

if TYPE_CHECKING:
    import polars as pl

RECORD = "run.json"
"""The file of a run that is written last; its presence marks a complete run."""

Write = Callable[[Path], Any]
"""Runs a scenario into a folder that does not exist yet."""


class Store:
    """Runs by name (a relative path), and tables and texts about all of them."""

    def held(self) -> AbstractContextManager[None]:
        """Lock against other sweeps on this machine; ResultError if one holds it. URLs have no lock."""
        return nullcontext()

    @abstractmethod
    def write_run(self, name: str, write: Write) -> Any:
        """Store a run, complete or not at all; returns the result of ``write``."""

    @abstractmethod
    def record(self, name: str) -> dict[str, Any] | None:
        """Provenance of a run; None if there is none of that name, ResultError if it is not complete."""

    @abstractmethod
    def frame(self, name: str, table: str) -> pl.DataFrame:
        """A table of a run, by its name in ``FRAMES``."""

    @abstractmethod
    def path(self, name: str) -> str:
        """Path or URL of a run, table or text."""

    @abstractmethod
    def write_frame(self, name: str, frame: pl.DataFrame) -> None:
        """Write a table about all runs."""

    @abstractmethod
    def whole(self, name: str) -> pl.DataFrame | None:
        """A table about all runs; None if there is none of that name."""

    @abstractmethod
    def text(self, name: str) -> str | None:
        """A text about all runs; None if there is none of that name."""

    @abstractmethod
    def write_text(self, name: str, text: str | None) -> None:
        """Write a text about all runs, or remove it."""


@dataclass(frozen=True)
class Folder(Store):
    """A folder of this machine, or one that all workers share."""

    root: Path

    def held(self) -> AbstractContextManager[None]:
        """Lock against other sweeps on this machine."""
        return held(self.root, overwrite=True, grows=True)

    def write_run(self, name: str, write: Write) -> Any:
        """Store a run, complete or not at all."""
        return write(self.root / name)

    def record(self, name: str) -> dict[str, Any] | None:
        """Provenance of a run."""
        folder = self.root / name
        return Result.load(folder).provenance if folder.exists() else None

    def frame(self, name: str, table: str) -> pl.DataFrame:
        """A table of a run."""
        return Result.load(self.root / name).frames[table]

    def path(self, name: str) -> str:
        """Path or URL of a run, table or text."""
        return str(self.root / name)

    def write_frame(self, name: str, frame: pl.DataFrame) -> None:
        """Write a table about all runs."""
        self.root.mkdir(parents=True, exist_ok=True)
        with replacing(self.root / name) as partial:
            write_table(partial, "sweep", frame)

    def whole(self, name: str) -> pl.DataFrame | None:
        """A table about all runs."""
        import polars as pl

        path = self.root / name
        return pl.read_parquet(path, hive_partitioning=False) if path.exists() else None

    def text(self, name: str) -> str | None:
        """A text about all runs."""
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.exists() else None

    def write_text(self, name: str, text: str | None) -> None:
        """Write a text about all runs, or remove it."""
        self.root.mkdir(parents=True, exist_ok=True)
        if text is None:
            (self.root / name).unlink(missing_ok=True)
            return
        with replacing(self.root / name) as partial:
            partial.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Bucket(Store):
    """A URL that fsspec opens, such as ``s3://bucket/runs``, with its options (keys, endpoint, ...).

    Object stores cannot rename, so a run is complete once its record exists, which is written last.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def _files_and_root(self) -> tuple[Any, str]:
        try:
            import fsspec
        except ImportError:
            raise FastsimError(f"{self.url}: needs fsspec and the package of its kind: pip install fsspec") from None
        try:
            files, root = fsspec.core.url_to_fs(self.url, **self.options)
        except (ValueError, ImportError, OSError) as error:
            raise ResultError(f"{self.url}: cannot be opened: {error}") from error
        return files, root.rstrip("/")

    def write_run(self, name: str, write: Write) -> Any:
        """Store a run, complete or not at all."""
        files, root = self._files_and_root()
        with tempfile.TemporaryDirectory(prefix="fastsim-") as place:
            folder = Path(place) / "run"
            answer = write(folder)
            # The record last: once it is visible, so is the rest.
            for path in sorted(folder.iterdir(), key=lambda path: (path.name == RECORD, path.name)):
                files.pipe_file(f"{root}/{name}/{path.name}", path.read_bytes())
        return answer

    def record(self, name: str) -> dict[str, Any] | None:
        """Provenance of a run."""
        text = self.text(f"{name}/{RECORD}")
        try:
            return None if text is None else dict(json_value(text)["provenance"])
        except (ValueError, KeyError, TypeError) as error:
            raise ResultError(f"{self.path(name)}: found no readable {RECORD}, expected a saved run") from error

    def frame(self, name: str, table: str) -> pl.DataFrame:
        """A table of a run."""
        import polars as pl

        if table not in FRAMES:
            raise KeyError(table)
        files, root = self._files_and_root()
        return pl.read_parquet(io.BytesIO(files.cat_file(f"{root}/{name}/{table}.parquet")))

    def path(self, name: str) -> str:
        """Path or URL of a run, table or text."""
        return f"{self.url.rstrip('/')}/{name}"

    def write_frame(self, name: str, frame: pl.DataFrame) -> None:
        """Write a table about all runs."""
        files, root = self._files_and_root()
        with tempfile.TemporaryDirectory(prefix="fastsim-") as place:
            path = Path(place) / "table.parquet"
            write_table(path, "sweep", frame)
            files.pipe_file(f"{root}/{name}", path.read_bytes())

    def whole(self, name: str) -> pl.DataFrame | None:
        """A table about all runs."""
        import polars as pl

        content = self._content(name)
        return None if content is None else pl.read_parquet(io.BytesIO(content))

    def text(self, name: str) -> str | None:
        """A text about all runs."""
        content = self._content(name)
        return None if content is None else content.decode()

    def _content(self, name: str) -> bytes | None:
        files, root = self._files_and_root()
        try:
            content: bytes = files.cat_file(f"{root}/{name}")
        except FileNotFoundError:
            return None
        return content

    def write_text(self, name: str, text: str | None) -> None:
        """Write a text about all runs, or remove it."""
        files, root = self._files_and_root()
        if text is not None:
            files.pipe_file(f"{root}/{name}", text.encode())
        elif files.exists(f"{root}/{name}"):
            files.rm_file(f"{root}/{name}")


def store_at(place: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Store:
    """The store at a folder or URL; ``options`` are the URL's, as fsspec takes them."""
    text = os.fspath(place)
    if "://" in text:
        return Bucket(text, dict(options or {}))
    if options:
        raise ResultError(f"{text}: found storage options, expected none for a folder of this machine")
    return Folder(Path(text).absolute())
