"""The result of a run: tables, the summary row, provenance; and its folder of files."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.engine.tables import arrow, check_table
from fastsim.errors import InputError, ResultError, StoredError, on_one_line, reading
from fastsim.foundation.csv_table import csv_bytes
from fastsim.foundation.displays import chart_of, html_table
from fastsim.foundation.folder_lock import held, recover
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import open_parquet, parquet_table, replacing, replacing_folder, write_parquet
from fastsim.foundation.written_folder import KEPT_INPUTS
from fastsim.scenario.kept_inputs import kept_inputs, write_inputs
from fastsim.scenario.scenario import Scenario
from fastsim_ext.build import CHECKED, FLAGS

if TYPE_CHECKING:
    import altair as alt

    from fastsim.engine.audit.audit import Audit

FRAMES = ("summary", "timeline", "placements", "jobs", "stages")
"""Tables of a result; each is one Parquet file of a saved run."""

SHOWN = (
    "pods", "pods_finished", "pods_unplaced", "pods_pending", "mean_gpu_alloc_pct", "gpu_alloc_pct", "frag_pct",
    "jct_mean_s", "wait_mean_s", "energy_kwh",
)  # fmt: skip
"""Figures of the summary that a notebook shows."""
LATER = ("telemetry",)
"""Tables that only some runs have."""
RECORDED_WITH = {"timeline": ("timeline", "all"), "placements": ("placements", "all"), "jobs": ("placements", "all")}
"""Values of ``record`` with which a run keeps a table; runs keep other tables always, and jobs in rounds ``jobs``."""

Frames = Mapping[str, pl.DataFrame]


def _check_readings(frame: pl.DataFrame) -> None:
    """ValueError unless a table has the columns of readings of GPUs."""
    from fastsim.telemetry.readings_table import SCHEMA

    if frame.columns != SCHEMA.names:
        raise ValueError(f"columns {', '.join(frame.columns)}")


class FolderFrames(Mapping[str, pl.DataFrame]):
    """The tables of a folder, each read on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in (*FRAMES, *LATER) or (name in LATER and not self.path(name).exists()):
            raise KeyError(name)
        if name not in self._read:
            with reading(self.path(name), "a table that a run wrote", (ValueError, TypeError)):
                frame = pl.DataFrame(pl.from_arrow(parquet_table(self.path(name), Work.WRITTEN_ROWS)))
                if name in FRAMES:
                    check_table(name, frame)
                else:
                    _check_readings(frame)
            self._read[name] = frame
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*FRAMES, *(name for name in LATER if self.path(name).exists())))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getstate__(self) -> dict[str, Any]:
        # Another process reads what it needs itself.
        return {"folder": self.folder, "_read": {}}

    def path(self, name: str) -> Path:
        """The file of a table."""
        return self.folder / f"{name}.parquet"


@whole_process
@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """Tables of one run; a table that the run did not record is a ResultError that names the ``record`` to choose.

    Tables are made on first use. Those of a run that was written to a folder are read from it;
    :meth:`scan` queries them without reading them in full. ``timing`` (seconds of wall, of CPU and in the compiled
    loop, pods per second) is kept apart, so that equal runs have equal tables. ``frames`` has all tables by name;
    a table that the run did not record has no rows there. Results are equal if their tables, provenance and citations
    are, whatever their ``timing``. ``scenario`` is what was run, objects in memory included; a result that was loaded
    from a folder, and that of a fork, has none.
    """

    frames: Frames
    provenance: dict[str, Any]
    timing: dict[str, float]
    citations: tuple[str, ...] = field(default=())
    scenario: Scenario | None = field(default=None)

    @property
    def summary(self) -> pl.DataFrame:
        """One row that sums up the run."""
        return self.frames["summary"]

    @property
    def timeline(self) -> pl.DataFrame:
        """A row for every event or sample."""
        return self.table("timeline")

    @property
    def placements(self) -> pl.DataFrame:
        """A row for every interval on a node."""
        return self.table("placements")

    @property
    def jobs(self) -> pl.DataFrame:
        """A row for every pod."""
        return self.table("jobs")

    @property
    def stages(self) -> pl.DataFrame:
        """The state after each stage that followed the main run."""
        return self.frames["stages"]

    @property
    def telemetry(self) -> pl.DataFrame:
        """A row for every reading of every GPU in a run with telemetry; columns as in ``readings_table``."""
        return self.table("telemetry")

    def table(self, name: str, where: str = "") -> pl.DataFrame:
        """A table by its name, as in ``FRAMES``; a ResultError of ``where`` if the run did not record it."""
        self.require(name, where)
        return self.frames[name]

    def recorded(self, name: str) -> bool:
        """Whether the run recorded this table; a table that was recorded may have no rows."""
        if name not in self.frames:
            return False
        records = RECORDED_WITH.get(name)
        kept = records is None or self.provenance.get("options", {}).get("record", "all") in records
        return kept or not self.frames[name].is_empty() or (name == "jobs" and "rounds" in self.summary.columns)

    def require(self, name: str, where: str = "") -> None:
        """ResultError of ``where`` unless the run recorded this table."""
        if name not in (*FRAMES, *LATER):
            names = ", ".join((*FRAMES, *LATER))
            raise ResultError(f"{where or 'table'}: found {name!r}, expected one of {names}")
        if self.recorded(name):
            return
        records, where = RECORDED_WITH.get(name), where or "result"
        if records is None:
            raise ResultError(f"{where}: found no {name}, expected a run with {name}=")
        record, wanted = self.provenance["options"]["record"], " or ".join(map(repr, records))
        found = f"no {name} in a run with record={record!r}"
        raise ResultError(f"{where}: found {found}, expected one with record={wanted}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        if (self.provenance, self.citations) != (other.provenance, other.citations) or {*self.frames} != {
            *other.frames
        }:
            return False
        return self is other or all(self.frames[name].equals(other.frames[name]) for name in self.frames)

    def __hash__(self) -> int:
        inputs = (self.provenance.get(name, {}).get("sha256") for name in ("cluster", "workload"))
        return hash((str(self.provenance.get("policy")), *inputs, self.citations))

    def __repr__(self) -> str:
        cluster, workload = (self.provenance.get(name, {}) for name in ("cluster", "workload"))
        nodes, seed = cluster.get("nodes", "?"), self.provenance.get("options", {}).get("seed", "?")
        policy = str(self.provenance.get("policy", "?"))
        return f"Result({policy!r}: {self._load(workload.get('pods'))} on {nodes} nodes, seed {seed})"

    def _load(self, pods: int | None) -> str:
        """The number of pods, or of jobs in rounds, which the summary has."""
        if pods is not None:
            return f"{pods} pods"
        count = self.summary["pods"] if "pods" in self.summary.columns else pl.Series([])
        return f"{count.item() if len(count) else '?'} jobs"

    def _repr_html_(self) -> str:
        """The figures of the summary that are known and not zero, for notebooks."""
        row = self.summary.row(0, named=True) if len(self.summary) else {}
        figures = [[name, row[name]] for name in SHOWN if row.get(name)]
        return html_table(repr(self), ["figure", "value"], figures)

    def plot(self, chart: str | None = None) -> alt.TopLevelMixin:
        """A chart of this run, such as ``waits`` or ``nodes``; without a name the first that has data.

        Charts are those of a report (see :data:`fastsim.reports.report_charts.KEYS`). Needs the extra ``report``.
        """
        drawn: alt.TopLevelMixin = chart_of(self, chart)
        return drawn

    def scan(self, name: str) -> pl.LazyFrame:
        """A table to query without holding it in memory, if it is in a file; its name as in ``FRAMES``."""
        self.require(name)
        return self.recorded_rows(name)

    def recorded_rows(self, name: str) -> pl.LazyFrame:
        """A table to query as in :meth:`scan`, without rows if the run did not record it."""
        if isinstance(self.frames, FolderFrames):
            return pl.scan_parquet(self.frames.path(name))
        return self.frames[name].lazy()

    def origin(self, where: str = "result", allow_code: bool = False, **objects: Any) -> Scenario:
        """The scenario that was run, to repeat it; in a folder with the inputs that the folder keeps.

        ``objects`` are inputs that were objects in memory and are not kept; an InputError names those that are
        missing. ``allow_code`` lets the policy of a saved run import a function of the user's.
        """
        if self.scenario is not None:
            return self.scenario.with_(**objects)
        kept = kept_inputs(self.frames.folder) if isinstance(self.frames, FolderFrames) else {}
        return Scenario.from_provenance(self.provenance, where, allow_code, **(kept | objects))

    def write_csv(self, name: str, path: str | os.PathLike[str]) -> Path:
        """Write a table as CSV for other programs; its name as in ``FRAMES``, or ``telemetry``.

        Lists are texts with spaces, as ``gpu_ids`` 0 1. Texts that a spreadsheet would run have an apostrophe in
        front. The file is the one that ``fastsim export table`` writes.
        """
        target = Path(path)
        with replacing(target) as partial:
            partial.write_bytes(csv_bytes(self.table(name)))
        return target

    def audit(self, scenario: Scenario | None = None) -> Audit:
        """The run's figures worked out again from its placements and inputs, and what differs.

        ``scenario`` is needed only for a saved run with inputs that its folder does not keep.
        """
        from fastsim.engine.audit.audit import audited

        return audited(self, scenario)

    def cite(self) -> str:
        """BibTeX of everything that took part in the run."""
        return "\n\n".join(self.citations)

    def labelled(self, citations: tuple[str, ...] = (), **provenance: Any) -> Result:
        """The same result with citations and further provenance entries."""
        return replace(self, citations=citations, provenance={**self.provenance, **provenance})

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False, keep_inputs: bool = False) -> Path:
        """Write the run to a folder, which appears complete or not at all.

        The folder keeps clusters and workloads that were objects in memory, so that it can be explained and audited;
        ``keep_inputs`` keeps workloads of more than ``kept_inputs.SMALL_ROWS`` pods, too.
        """
        target = Path(folder)
        with held(target, overwrite), replacing_folder(target) as partial:
            self.write(partial, keep_inputs)
        return target

    def write(self, folder: str | os.PathLike[str], keep_inputs: bool = False) -> None:
        """Write tables, inputs and record into a folder that is there; it may have the tables already."""
        folder = Path(folder)
        for name in self.frames:
            path = folder / f"{name}.parquet"
            if not isinstance(self.frames, FolderFrames):
                write_table(path, name, self.frames[name])
            elif self.frames.path(name) != path:
                shutil.copyfile(self.frames.path(name), path)
        self.write_inputs(folder, keep_inputs)
        self.write_record(folder)

    def write_inputs(self, folder: Path, large: bool = False) -> None:
        """Write the inputs that were objects in memory, or copy those that the run's folder keeps."""
        if self.scenario is not None:
            write_inputs(self.scenario, folder, large)
        elif isinstance(self.frames, FolderFrames):
            for name in KEPT_INPUTS:
                if self.frames.path(name).exists():
                    shutil.copyfile(self.frames.path(name), folder / f"{name}.parquet")

    def write_record(self, folder: str | os.PathLike[str]) -> None:
        """Write ``run.json``, all of a saved run that is no table."""
        record = {"provenance": self.provenance, "timing": self.timing, "citations": list(self.citations)}
        (Path(folder) / "run.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Result:
        """A saved run; its tables are read on first use."""
        source = Path(folder)
        recover(source)
        try:
            record = json_value((source / "run.json").read_text())
            known: dict[str, Any] = {name: record[name] for name in ("provenance", "timing")}
            known["citations"] = tuple(record["citations"])
            if isinstance(record["citations"], str):
                raise TypeError("citations as one text")
        except (OSError, ValueError, TypeError, KeyError) as error:
            kind = ResultError if isinstance(error, OSError) else StoredError
            where = on_one_line(source, 200)
            raise kind(f"{where}: found no readable run.json, expected a folder of a saved run") from error
        _check_record(source / "run.json", known)
        frames = FolderFrames(source)
        for name in frames:
            open_parquet(frames.path(name)).close()  # a damaged file is found now, not later
        return cls(frames, **known)


RECORD_KINDS: Mapping[str, Any] = {
    "scenario": dict | None, "objects": list, "cluster": dict, "workload": dict, "options": dict, "versions": dict,
    "build": dict, "plan": dict, "policy": str, "scenario_id": str, "typical_pods": int, "compat": list,
    "forked_from": dict | None, "rates": dict, "applications": dict,
}  # fmt: skip
"""Types of entries of the provenance, where they are there; ``objects`` are fields that were objects in memory."""


def _check_record(path: Path, record: Mapping[str, Any]) -> None:
    """InputError unless the parts of ``run.json`` have the types with which they were written."""

    def refuse(name: str, value: Any, expected: str) -> None:
        raise InputError(f"{path}: {name}", type(value).__name__, expected)

    provenance, timing = record["provenance"], record["timing"]
    for name, part in (("provenance", provenance), ("timing", timing)):
        if not isinstance(part, dict):
            refuse(name, part, "a mapping")
    for name, kind in RECORD_KINDS.items():
        if name in provenance and not isinstance(provenance[name], kind):
            refuse(f"provenance.{name}", provenance[name], "what a run wrote")
    for name in ("cluster", "workload"):
        for key, kind in (("sha256", str), ("nodes", int), ("pods", int), ("name", str)):
            if not isinstance(provenance.get(name, {}).get(key, kind()), kind):
                refuse(f"provenance.{name}.{key}", provenance[name][key], "what a run wrote")
    for name, value in timing.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(f"timing.{name}", value, "a number")
    for citation in record["citations"]:
        if not isinstance(citation, str):
            refuse("citations", citation, "a list of texts")


def write_table(path: Path, name: str, frame: pl.DataFrame) -> None:
    """Write one table of a result."""
    table = arrow(frame)
    write_parquet(path, table.to_batches(), table.schema, {"fastsim.schema": name})


def provenance_of_build() -> dict[str, Any]:
    """Build and versions that results are computed with."""
    return {"build": {"checked": CHECKED, "flags": FLAGS}, "versions": dict(_versions())}


@cache
def _versions() -> dict[str, str]:
    """Versions of fastsim and its libraries; cached, because finding them reads files."""
    import pyarrow as pa

    packages = {"numpy": np.__version__, "polars": pl.__version__, "pyarrow": pa.__version__}
    return {"fastsim": version("fastsim-gpu"), "python": platform.python_version(), **packages}
