"""A user's ids come back: joined on them, every table of every engine tells about the user's own rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.workload import Workload

REQUEST = {"cpu_milli": 0, "memory_mib": 0, "gpu_milli": 1000}
SUBMIT_S, NUM_GPU = [0.0, 300.0, 600.0, 900.0], [1, 2, 3, 4]
IDS: dict[str, tuple[list[Any], str]] = {
    "rising": ([0, 1, 2, 3], ""),
    "with gaps": ([10, 20, 31, 45], ""),
    "not rising": ([3, 0, 2, 1], ""),
    "falling, with gaps": ([70, 50, 30, 5], ""),
    "negative": ([-1, 4, -7, 0], ""),
    "large": ([2**62, 2**53 + 1, 2**53, 7], ""),
    "names": (["b", "a", "7", "c d"], ""),
    "twice": ([4, 5, 6, 5], "every id once"),
    "missing": ([4, None, 6, 5], "expected a value|an id in every row|a value"),
}
"""Ids of four rows, in order of arrival; a pattern of the message if they are refused."""
ORDERS = {"by arrival": [0, 1, 2, 3], "out of order": [2, 0, 3, 1]}
"""Orders of the rows."""
ENTRIES: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "from_polars": lambda frame, _: Workload.from_polars(frame),
    "from_polars, lazy": lambda frame, _: Workload.from_polars(frame.lazy()),
    "from_polars, mapped": lambda frame, _: Workload.from_polars(frame.rename({"pod_id": "id"}), {"pod_id": "id"}),
    "from_pandas": lambda frame, _: Workload.from_pandas(frame.to_dict(as_series=False)),
    "from_csv": lambda frame, folder: Workload.from_csv(csv(frame, folder)),
    "from_csv, Parquet": lambda frame, folder: Workload.from_csv(parquet(frame, folder)),
    "from_arrow, mapped": lambda frame, _: Workload.from_arrow(frame.to_arrow(), {}),
    "text, CSV": lambda frame, folder: f"csv:{csv(frame, folder)}",
    "written and scanned": lambda frame, folder: scanned(Workload.from_polars(frame), folder),
    "text, written": lambda frame, folder: str(scanned(Workload.from_polars(frame), folder).name),
    "from_arrow": lambda frame, _: Workload.from_arrow(frame),
    "scan": lambda frame, folder: Workload.scan(parquet(frame, folder)),
    "text, Parquet": lambda frame, folder: str(parquet(frame, folder)),
}  # fmt: skip
"""Ways in for a table of the user's."""
STRICT = ("from_arrow", "scan", "text, Parquet")
"""Those of canonical tables: rows are in order of arrival, ids are numbers."""
APPLICATION = {"workload": "cifar10", "batch_size": 128}
ENGINES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "pods": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "best_fit", "queue": "fifo"}),
    "shares": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "max_min_fairness"}),
    "ideal": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "max_min_fairness", "ideal": True}),
    "ordered": ("uniform?nodes=4&gpu=T4&gpus=4", {}, {"policy": "las"}),
    "adaptive": ("sia:2:0:2", APPLICATION, {"policy": "pollux"}),
    "monitored": ("uniform?nodes=4&gpu=T4&gpus=4", {"gpu_memory_mib": 4000}, {"policy": "monitored"}),
}  # fmt: skip
"""Cluster, further columns and options of a run of each engine."""


def csv(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_csv(folder / "own.csv")
    return folder / "own.csv"


def parquet(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_parquet(folder / "own.parquet")
    return folder / "own.parquet"


def scanned(workload: Workload, folder: Path) -> Workload:
    workload.write(folder / "written.parquet")
    return Workload.scan(folder / "written.parquet")


def table(ids: list[Any], order: list[int], engine: str = "pods") -> pl.DataFrame:
    """Rows of a user: the later a pod arrives, the more GPUs it requests and the longer it runs."""
    gpus = [1] * 4 if engine == "monitored" else NUM_GPU
    frame = pl.DataFrame(
        {"pod_id": ids, "submit_s": SUBMIT_S, "num_gpu": gpus, "duration_s": [700.0, 800.0, 900.0, 1000.0]}
    )
    more = {name: pl.lit(value) for name, value in {**REQUEST, **ENGINES[engine][1]}.items()}
    return frame.with_columns(**more)[order]


def own_rows(frame: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Rows of a result joined with the user's on the user's ids; all of them have one."""
    on = "pod_id" if frame["pod_id"].dtype.is_integer() else "native_id"
    joined = found.join(frame, left_on=on, right_on="pod_id", how="left", suffix="_own", maintain_order="left")
    assert joined["submit_s_own" if "submit_s" in found.columns else "submit_s"].null_count() == 0
    assert sorted(set(found[on].to_list())) == sorted(frame["pod_id"].to_list())
    return joined


def check(frame: pl.DataFrame, jobs: pl.DataFrame, placements: pl.DataFrame) -> None:
    own = own_rows(frame, jobs)
    assert len(own) == 4 and own["submit_s"].to_list() == own["submit_s_own"].to_list()
    if not len(placements):  # of the ideal
        return
    held = own_rows(frame, placements)
    first = held.group_by("submit_s").agg(
        pl.col("start_s").min(), pl.col("gpu_ids").list.len().sum(), pl.first("num_gpu")
    )
    assert (first["start_s"] - first["submit_s"]).is_between(0.0, 400.0).all()
    if "profile" not in held.columns and "charged_restarts" not in jobs.columns:
        assert set(held.group_by("pod_id", "attempt").agg(pl.col("gpu_ids").list.len().sum(), pl.first("num_gpu"))
                   .select(pl.col("gpu_ids") == pl.col("num_gpu")).to_series()) == {True}  # fmt: skip


@pytest.mark.spread(40)
@pytest.mark.parametrize("state", IDS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_way_in_keeps_ids(entry: str, order: str, state: str, tmp_path: Path) -> None:
    ids, refused = IDS[state]
    frame = table(ids, ORDERS[order])
    if entry in STRICT and order == "out of order":
        refused = refused or "rows sorted by submit_s"
        refused += "|rows sorted by submit_s"
    if entry in STRICT and state == "names":
        refused = "a value of type int64"
    cluster, _, options = ENGINES["pods"]
    if refused:
        with pytest.raises(InputError, match=refused):
            fs.simulate(cluster, ENTRIES[entry](frame, tmp_path), **options)
        return
    result = fs.simulate(cluster, ENTRIES[entry](frame, tmp_path), **options)
    check(frame, result.jobs, result.placements)
    own = own_rows(frame, result.jobs)
    assert own["jct_s"].to_list() == own["duration_s"].to_list()


@pytest.mark.spread(9)
@pytest.mark.parametrize("state", ["with gaps", "negative", "names"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_tells_about_own_rows(engine: str, state: str, tmp_path: Path) -> None:
    frame = table(IDS[state][0], ORDERS["out of order"], engine)
    cluster, _, options = ENGINES[engine]
    workload = scanned(Workload.from_polars(frame), tmp_path)
    for given in (Workload.from_polars(frame), workload):
        result = fs.simulate(cluster, given, **options)
        check(frame, result.jobs, result.placements)
        folder = result.save(tmp_path / "run", overwrite=True)
        check(frame, *(pl.read_parquet(folder / f"{name}.parquet") for name in ("jobs", "placements")))
    streamed = fs.simulate(cluster, workload, out=tmp_path / "streamed", **options)
    (tmp_path / "written.parquet").unlink()
    check(frame, streamed.jobs, streamed.placements)
    about = streamed.timeline["pod_id"].drop_nulls()
    if frame["pod_id"].dtype.is_integer():
        assert set(about.to_list()) <= set(frame["pod_id"].to_list())


def test_every_public_maker_is_a_way_in() -> None:
    makers = {name for name, value in vars(Workload).items() if isinstance(value, classmethod)}
    published = {"from_openb", "from_gavel", "from_sia", "from_synergy", "from_philly", "from_trace", "from_kubernetes"}
    assert makers - published - {"synth"} == {entry.partition(",")[0] for entry in ENTRIES} & makers
