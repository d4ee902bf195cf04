"""What a run leaves behind: frames, one summary row, where they came from, and how to keep them."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.errors import ResultError
from fastsim.frames import OUTCOME, ROW, jobs_frame, placements_frame, timeline_frame
from fastsim.summary import frag_milli, summary_frame
from fastsim.tabular import parquet_table, replacing_folder, write_parquet
from fastsim_ext.build import CHECKED, FLAGS

if TYPE_CHECKING:
    from fastsim.engine import OnlineRun
    from fastsim.workload import Workload

FRAMES = ("summary", "timeline", "placements", "jobs", "stages")
"""Tables of a result; each is one Parquet file of a saved run."""


@dataclass(frozen=True)
class Result:
    """Frames of one run; a frame that was not recorded has no rows.

    ``summary`` one row · ``timeline`` a row for every event or sample · ``placements`` a row for every interval
    on a node · ``jobs`` a row for every pod · ``stages`` the state after each stage that followed the main run.
    ``timing`` (wall and CPU seconds, pods per second) is kept apart, so that equal runs have equal frames.
    """

    summary: pl.DataFrame
    timeline: pl.DataFrame
    placements: pl.DataFrame
    jobs: pl.DataFrame
    stages: pl.DataFrame
    provenance: dict[str, Any]
    timing: dict[str, float]
    citations: tuple[str, ...] = field(default=())

    def cite(self) -> str:
        """BibTeX of everything that took part in the run."""
        return "\n\n".join(self.citations)

    def labelled(self, citations: tuple[str, ...] = (), **provenance: Any) -> Result:
        """The same result with citations and further provenance entries."""
        return replace(self, citations=citations, provenance={**self.provenance, **provenance})

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the run to a folder, which appears complete or not at all."""
        target = Path(folder)
        if target.exists() and not overwrite and (not target.is_dir() or any(target.iterdir())):
            raise ResultError(f"{target}: exists already; choose another folder or overwrite it")
        with replacing_folder(target) as partial:
            self._write(partial)
        return target

    def _write(self, folder: Path) -> None:
        for name in FRAMES:
            table = getattr(self, name).to_arrow(compat_level=pl.CompatLevel.oldest())
            write_parquet(folder / f"{name}.parquet", table.to_batches(), table.schema, {"fastsim.schema": name})
        record = {"provenance": self.provenance, "timing": self.timing, "citations": list(self.citations)}
        (folder / "run.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Result:
        """A saved run."""
        source = Path(folder)
        try:
            record = json.loads((source / "run.json").read_text())
            known: dict[str, Any] = {name: record[name] for name in ("provenance", "timing")}
            known["citations"] = tuple(record["citations"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ResultError(f"{source}: found no readable run.json, expected a folder of a saved run") from error
        for name in FRAMES:
            known[name] = pl.DataFrame(pl.from_arrow(parquet_table(source / f"{name}.parquet")))
        return cls(**known)


def gathered(run: OnlineRun, workload: Workload, timing: dict[str, float]) -> Result:
    """The result of a run that has finished."""
    record, kept = run.options.record, max(run.typical.kept, 1)
    out = _joined(run.outcomes, OUTCOME)
    pod_ids = _joined(run.pod_ids, np.dtype("i8"))
    natives = None if not run.natives or any(n is None for n in run.natives) else pl.concat(run.natives)
    final, at_capacity, areas = run.online.state()
    final, at_capacity = np.frombuffer(final, ROW)[0], np.frombuffer(at_capacity, ROW)[0]
    seconds = max(0.0, float(final["t"]) - (run.first_s or 0.0))
    listed = out if record in ("placements", "all") else out[:0]
    return Result(
        summary=summary_frame(final, at_capacity, areas, seconds, (kept, run.main_kept), out),
        timeline=timeline_frame(_joined(run.rows, ROW), _joined(run.row_kept, np.dtype("i8")), pod_ids),
        placements=placements_frame(listed, pod_ids, natives, run.cluster.nodes["name"].to_pylist()),
        jobs=jobs_frame(listed, pod_ids, natives),
        stages=_stages_frame(run),
        provenance=_provenance(run, workload),
        timing={**timing, "pods_per_s": run.pods / timing["wall_s"]},
    )


def _joined(parts: list[Any], kind: Any) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _stages_frame(run: OnlineRun) -> pl.DataFrame:
    rows = [
        {"stage": tag, "pods_running": int(row["running"]), "gpu_milli_alloc": int(row["gpu_alloc"]),
         "cpu_milli_alloc": int(row["cpu_alloc"]), "memory_mib_alloc": int(row["mem_alloc"]),
         "active_nodes": int(row["nodes_used"]), "active_gpus": int(row["gpus_used"]),
         "frag_milli": frag_milli(row, kept), "power_w": float(row["cpu_mw"] + row["gpu_mw"]) / 1000}
        for tag, row, kept in run.stages
    ]  # fmt: skip
    integers = ("pods_running", "gpu_milli_alloc", "cpu_milli_alloc", "memory_mib_alloc", "active_nodes", "active_gpus")
    schema = {"stage": pl.String, **dict.fromkeys(integers, pl.Int64), "frag_milli": pl.Float64, "power_w": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def _provenance(run: OnlineRun, workload: Workload) -> dict[str, Any]:
    """Everything that decides the bytes of the result, and what it was computed with."""
    plan = asdict(replace(run.plan, terms=tuple(replace(t, scorer=None) for t in run.plan.terms)))
    options: dict[str, Any] = {n: getattr(run.options, n) for n in ("seed", "sample_s", "until_s", "record")}
    options["deschedule"] = [
        {"policy": type(step.policy).__qualname__, **vars(step.policy), "ratio": step.ratio, "at_s": step.at_s}
        for step in run.options.deschedule
    ]
    options["inflation"] = None if run.options.inflation is None else asdict(run.options.inflation)
    return {
        "plan": plan, "options": options,
        "cluster": {"nodes": len(run.cluster), "sha256": run.cluster.checksum()},
        "workload": {"name": workload.name, "pods": run.pods, "sha256": workload.checksum()},
        "typical_pods": len(run.typical.count),
        "build": {"checked": CHECKED, "flags": FLAGS},
        "versions": {"fastsim": version("fastsim-gpu"), "python": platform.python_version(),
                     **{name: version(name) for name in ("numpy", "polars", "pyarrow")}},
    }  # fmt: skip
