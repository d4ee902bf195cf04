"""Relations that small random runs of every engine must have: between a run and the same run told otherwise."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import fastsim as fs
from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.result import FRAMES
from fastsim.scenario.outages import Maintenance
from fastsim.scenario.sort_keys import SERVED
from fastsim.simulation import simulate as simulation
from fastsim.workload import Workload
from tests.fuzz import small_runs, trial
from tests.fuzz.scenario_fields import first_difference
from tests.fuzz.trial import Trial
from tests.property.test_audit import CLOCKED, ROUNDS_S, SHIFT_S, same

ENGINES = ("pods", "shares", "orders", "adaptive", "monitored")
INSTANTS = ("submit_s", "start_s", "end_s", "deadline_s", "bound_s", "t_s")
"""Columns of times of the clock."""
TIMES = ("submit_s", "duration_s", "est_duration_s", "deadline_s", "total_work")
"""Columns of times of a workload, and of the steps that take them."""
SCALED = {"tiresias": "tiresias(first_h={!r})"}
"""Policies with a time in a parameter, whose default is scaled."""
UNSCALED = {
    "adaptive": "steps and restarts of applications take the seconds that were measured",
    "monitored": "readings are those of whole seconds, and detectors allocate memory at recorded ones",
}
"""Engines whose runs do not scale, and why."""
FAR_S, FAR_OF_JOBS_S = 4096.0, 256 * 3600.0
"""Times after which nothing of a small run of pods, or of one of jobs, is left: whole rounds of any length here."""
ALONE = {
    **dict.fromkeys(("fifo", "isolated", "proportional", "pollux", "sia"), "the second day has other draws"),
    "monitored": "the second day begins with readings of idle GPUs, the first with none",
}
"""Policies for jobs whose second day is another one than the first, and why."""
Relation = Callable[[str, fs.Scenario, random.Random, Path], None]


def played(scenario: fs.Scenario, **options: Any) -> fs.Result:
    """The result of a run."""
    return simulation.run(scenario, **options)


def rows(workload: Any) -> pl.DataFrame:
    """The table of a workload."""
    return pl.DataFrame(pl.from_arrow(workload.table()))


def workload_of(frame: pl.DataFrame, like: Any) -> Workload:
    """The workload of a changed table."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    return Workload.from_arrow(table.replace_schema_metadata(like.schema.metadata))


def equal(found: fs.Result, expected: fs.Result, *tables: str) -> None:
    """AssertionError unless these tables, or all, are the same."""
    for name in tables or FRAMES:
        one, other = found.frames[name], expected.frames[name]
        assert one.equals(other), f"{name}: {first_difference(one, other)}"


def twice(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """The same run again."""
    equal(played(scenario), played(scenario))


def audited(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """An audit finds nothing."""
    result = played(scenario)
    assert [str(one) for one in result.audit(scenario).differences] == []


def renamed(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """Other ids of pods, other names of pods, nodes and tenants."""
    plus, suffix = draw.choice((1, 7, 1 << 40, -1000)), draw.choice(("x", "\u00df", " (2)"))
    frame, nodes = rows(scenario.workload), pl.DataFrame(pl.from_arrow(scenario.cluster.nodes))
    named = [name for name in ("tenant", "native_id", "pinned_node") if name in frame.columns]
    changed = frame.with_columns(pl.col("pod_id") + plus, *(pl.col(name) + suffix for name in named))
    other = scenario.with_(
        workload=workload_of(changed, scenario.workload), weights=_suffixed(scenario.weights, suffix),
        cluster=fs.Cluster.from_arrow(nodes.with_columns(pl.col("name") + suffix), catalog=scenario.cluster.catalog),
        quotas=_suffixed(scenario.quotas, suffix),
        maintenance=scenario.maintenance and tuple(
            Maintenance(one.node + suffix, one.down_s, one.up_s) for one in scenario.maintenance
        ),
    )  # fmt: skip
    found, expected = played(other), played(scenario)
    names = ["pod_id", "native_id", "mate_id", "node"]
    for table in FRAMES:
        mine, theirs = found.frames[table], expected.frames[table]
        if "pod_id" in theirs.columns:
            assert mine["pod_id"].equals(theirs["pod_id"] + plus), table
        one, two = (frame.drop(names, strict=False) for frame in (mine, theirs))
        assert one.equals(two), f"{table}: {first_difference(one, two)}"


def _suffixed(text: Any, suffix: str) -> Any:
    """Quotas or weights of renamed tenants."""
    for tenant in ("anna", "bert"):
        text = text.replace(f"{tenant}:", f"{tenant}{suffix}:").replace(f"{tenant}=", f"{tenant}{suffix}=")
    return text


def shuffled(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """Rows of a user in any order: joined on the user's ids, they are the same jobs."""
    frame = rows(scenario.workload)
    places = list(range(len(frame)))
    draw.shuffle(places)
    # Rows of one instant stay in their order, which decides among them.
    at = {place: number for number, place in enumerate(places)}
    submit_s = frame["submit_s"].to_list()
    first: dict[float, int] = {}
    for place in range(len(frame)):
        first.setdefault(submit_s[place], at[place])
    order = sorted(range(len(frame)), key=lambda place: (first[submit_s[place]], place))
    found = played(scenario.with_(workload=Workload.from_polars(frame[order], origin="keep")))
    expected = played(scenario)
    equal(found, expected, "jobs", "placements", "summary")


def shifted(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """All times later by a constant, which whole rounds make up where rounds are counted from 0."""
    shift_s = ROUNDS_S if engine in CLOCKED else draw.choice((SHIFT_S, 1.0, 86_400.0, 1024.0))
    frame, nodes = rows(scenario.workload), pl.DataFrame(pl.from_arrow(scenario.cluster.nodes))
    late = [pl.col(name) + shift_s for name in ("submit_s", "deadline_s") if name in frame.columns]
    other = scenario.with_(
        workload=workload_of(frame.with_columns(late), scenario.workload), sample_s=None,
        cluster=fs.Cluster.from_arrow(
            nodes.with_columns(pl.col("add_s", "remove_s") + shift_s), catalog=scenario.cluster.catalog
        ),
        until_s=None if scenario.until_s is None else scenario.until_s + shift_s,
        maintenance=scenario.maintenance and tuple(
            Maintenance(one.node, one.down_s + shift_s, one.up_s and one.up_s + shift_s)
            for one in scenario.maintenance
        ),
    )  # fmt: skip
    found, expected = played(other), played(scenario.with_(sample_s=None))
    for table in ("jobs", "placements"):
        moved = [pl.col(name) + shift_s for name in INSTANTS if name in expected.frames[table].columns]
        same(found.frames[table], expected.frames[table].with_columns(moved))


def scaled(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """All times and options of time by a power of two: the same decisions, at the same times scaled."""
    by = draw.choice((0.25, 0.5, 2.0, 64.0))
    if engine == "shares":  # by default shares are decided again after seconds that do not scale
        scenario = scenario.with_(realloc_s=2 * (scenario.round_s or 360.0))
    frame, nodes = rows(scenario.workload), pl.DataFrame(pl.from_arrow(scenario.cluster.nodes))
    times = [pl.col(name) * by for name in TIMES if name in frame.columns]
    options = {name: None if value is None else value * by for name in
               ("until_s", "sample_s", "checkpoint_every_s", "restart_s", "round_s", "realloc_s")
               for value in [getattr(scenario, name)]}  # fmt: skip
    other = scenario.with_(
        workload=workload_of(frame.with_columns(times), scenario.workload), **options,
        policy=SCALED.get(str(scenario.policy), str(scenario.policy)).format(by),
        cluster=fs.Cluster.from_arrow(
            nodes.with_columns(pl.col("add_s", "remove_s") * by), catalog=scenario.cluster.catalog
        ),
        failures=scenario.failures and f"mtbf={8 * by!r},mttr={2 * by!r}",
        maintenance=scenario.maintenance and tuple(
            Maintenance(one.node, one.down_s * by, one.up_s and one.up_s * by) for one in scenario.maintenance
        ),
    )  # fmt: skip
    found, expected = played(other), played(scenario)
    for table in ("jobs", "placements"):
        kept = [name for name in ("pod_id", "node", "gpu_ids", "state", "reason", "attempts", "attempt", *INSTANTS)
                if name in expected.frames[table].columns]  # fmt: skip
        one, two = (result.frames[table].select(kept) for result in (found, expected))
        two = two.with_columns(pl.col(name) * by for name in INSTANTS if name in kept)
        assert one.equals(two), f"{table}: {first_difference(one, two)}"


def joined(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """Two days far apart: each is as if it were alone."""
    if engine == "pods":
        _two_days_of_pods(scenario)
    elif str(scenario.policy).partition("(")[0] not in ALONE:
        _two_days_of_jobs(scenario.with_(until_s=None, sample_s=None))


def _two_days_of_jobs(plain: fs.Scenario) -> None:
    frame = rows(plain.workload)
    late = [pl.col(name) + FAR_OF_JOBS_S for name in ("submit_s", "deadline_s") if name in frame.columns]
    later = frame.with_columns(pl.col("pod_id") + 100, *late)
    one = played(plain)
    both = played(plain.with_(workload=workload_of(pl.concat([frame, later]), plain.workload)))
    if one.jobs["end_s"].null_count() or one.jobs["end_s"].max() > FAR_OF_JOBS_S:  # type: ignore[operator]
        return
    for table in ("jobs", "placements"):
        alone, days = (result.frames[table].drop("native_id", strict=False) for result in (one, both))
        first, second = days.filter(pl.col("pod_id") < 100), days.filter(pl.col("pod_id") >= 100)
        back = second.with_columns(
            *(pl.col(name) - 100 for name in ("pod_id", "mate_id") if name in days.columns),
            *(pl.col(name) - FAR_OF_JOBS_S for name in INSTANTS if name in days.columns),
        )
        same(first, alone)
        same(back, alone)


def _two_days_of_pods(scenario: fs.Scenario) -> None:
    """Two days of pods far apart."""
    frame = rows(scenario.workload).with_columns(pl.col("duration_s").fill_null(1.0))
    nodes = pl.DataFrame(pl.from_arrow(scenario.cluster.nodes)).with_columns(add_s=None, remove_s=None)
    plain = scenario.with_(
        cluster=fs.Cluster.from_arrow(nodes.with_columns(pl.col("add_s", "remove_s").cast(pl.Float64)),
                              catalog=scenario.cluster.catalog),
        failures="", maintenance=None, until_s=None, sample_s=None, policy="best_fit",
    )  # fmt: skip
    later = frame.with_columns(pl.col("submit_s") + FAR_S, pl.col("pod_id") + 100)
    later = later.with_columns(pl.col("job_id") + 10) if "job_id" in frame.columns else later
    one = played(plain.with_(workload=workload_of(frame, scenario.workload)))
    both = played(plain.with_(workload=workload_of(pl.concat([frame, later]), scenario.workload)))
    if one.jobs["reason"].cast(pl.String).is_in(["pending"]).any():
        return  # what waits for ever waits the next day, too
    for table in ("jobs", "placements"):
        alone, days = one.frames[table], both.frames[table]
        first, second = days.filter(pl.col("pod_id") < 100), days.filter(pl.col("pod_id") >= 100)
        back = second.with_columns(pl.col("pod_id") - 100, *(
            pl.col(name) - FAR_S for name in INSTANTS if name in second.columns
        ))  # fmt: skip
        names = ["native_id"]
        for part in (first, back):
            assert part.drop(names).equals(alone.drop(names)), f"{table}: {first_difference(part, alone)}"


def until(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """A run that ends earlier begins like the whole one."""
    whole = played(scenario.with_(sample_s=None))
    last_s = whole.jobs["end_s"].max()
    if not isinstance(last_s, float) or last_s <= 0:
        return
    end_s = min(scenario.until_s or last_s, last_s) * draw.choice((0.25, 0.5, 0.75, 0.9))
    part = played(scenario.with_(sample_s=None, until_s=end_s))
    kept = [name for name in ("pod_id", "attempt", "node", "gpu_ids", "start_s") if name in whole.placements.columns]
    begun = [result.placements.filter(pl.col("start_s") < end_s).select(kept) for result in (part, whole)]
    begun = [frame.sort("pod_id", "start_s") for frame in begun]
    assert begun[0].equals(begun[1]), first_difference(*begun)
    ended = [result.jobs.filter(pl.col("end_s") < end_s).select("pod_id", "end_s") for result in (part, whole)]
    assert ended[0].equals(ended[1]), first_difference(*ended)


def prefix(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """Jobs that arrive after the end of a run change nothing of it; rounds end with the round that is being played.

    If all earlier jobs are over before that end, the run lasts until it only for later jobs, and means differ.
    """
    frame = rows(scenario.workload)
    end_s = float(draw.choice(frame["submit_s"].to_list())) + draw.choice((0.0, 1 / 128))
    ended = scenario.with_(until_s=end_s, typical=scenario.typical or scenario.workload)
    whole = played(ended)
    last_s = max(end_s, whole.jobs["submit_s"].to_numpy().max(initial=end_s))
    first = workload_of(frame.filter(pl.col("submit_s") <= last_s), scenario.workload)
    alone = played(ended.with_(workload=first))
    over = alone.jobs["state"].cast(pl.String).is_in(["finished", "unplaced"]).all()
    equal(alone, whole, *(("jobs", "placements") if over else ()))


def copied(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """Two equal clusters: the same nodes from a Parquet file, from a CSV file and from columns in another order."""
    cluster: fs.Cluster = scenario.cluster
    way = draw.choice(("parquet", "csv", "columns"))
    if way == "columns":
        names = cluster.nodes.column_names
        other = fs.Cluster.from_arrow(cluster.nodes.select(draw.sample(names, len(names))), catalog=cluster.catalog)
    else:
        path = folder / f"nodes.{way}"
        (cluster.to_parquet if way == "parquet" else cluster.to_csv)(path)
        other = (fs.Cluster.from_parquet if way == "parquet" else fs.Cluster.from_csv)(path)
    assert other.checksum() == cluster.checksum(), way
    equal(played(scenario.with_(cluster=other)), played(scenario))


def stored(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """The workload in a file, or in record batches of a few rows."""
    table = scenario.workload.table()
    if draw.random() < 0.5:
        scenario.workload.write(folder / "pods.parquet")
        other: Any = Workload.scan(folder / "pods.parquet")
    else:
        other = Workload.from_arrow(
            pa.Table.from_batches(table.to_batches(max_chunksize=draw.randint(1, 3)), table.schema)
        )
    equal(played(scenario.with_(workload=other)), played(scenario))


def recorded(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """What else is recorded changes no table, and neither does a folder that tables are written to."""
    whole = played(scenario)
    for record, tables in (("summary", ("summary",)), ("timeline", ("summary", "timeline")),
                           ("placements", ("summary", "placements"))):  # fmt: skip
        equal(played(scenario.with_(record=record)), whole, *tables)
    written = played(scenario.with_(out=str(folder / "out")), overwrite=True)
    for name in FRAMES:
        mine, theirs = written.frames[name], whole.frames[name]
        on = [one for one in ("pod_id", "attempt", "start_s") if one in theirs.columns] if name != "timeline" else []
        mine, theirs = (mine.sort(on), theirs.sort(on)) if on else (mine, theirs)
        assert mine.equals(theirs), f"{name}: {first_difference(mine, theirs)}"


def resumed(engine: str, scenario: fs.Scenario, draw: random.Random, folder: Path) -> None:
    """A run that goes on from its last checkpoint writes the same bytes."""
    if engine == "monitored":
        return  # has no checkpoints
    place = folder / "resumed"
    shutil.rmtree(place, ignore_errors=True)
    other = scenario.with_(out=str(place / "run"))
    played(other, checkpoints=Checkpoints(draw.randint(1, 5), keep=True))
    before = {path.name: path.read_bytes() for path in (place / "run").glob("*.parquet")}
    shutil.rmtree(place / "run")
    fs.resume(place / "run", cluster=scenario.cluster, workload=scenario.workload)
    for name, content in before.items():
        assert (place / "run" / name).read_bytes() == content, name


RELATIONS: dict[str, tuple[Relation, tuple[str, ...]]] = {
    "twice": (twice, ENGINES), "audited": (audited, ENGINES), "renamed": (renamed, ENGINES),
    "shuffled": (shuffled, ENGINES), "shifted": (shifted, ENGINES), "joined": (joined, ENGINES),
    "scaled": (scaled, tuple(engine for engine in ENGINES if engine not in UNSCALED)),
    "until": (until, ENGINES), "stored": (stored, ENGINES),
    "recorded": (recorded, ENGINES), "resumed": (resumed, ENGINES), "prefix": (prefix, ENGINES),
    "copied": (copied, ENGINES),
}  # fmt: skip
"""Relations, and the engines whose runs have them."""


def _applies(name: str, scenario: fs.Scenario) -> bool:
    """Whether a relation holds for the options of a run of pods."""
    fixed = scenario.queue.startswith(SERVED) or scenario.queue in ("easy", "conservative")
    return not (name == "scaled" and fixed)


def tried(engine: str, folder: Path, seed: int) -> str:
    """One relation of one run."""
    draw = random.Random(f"{engine} {seed}")
    name = draw.choice([name for name, (_, engines) in RELATIONS.items() if engine in engines])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scenario = small_runs.scenario_of(engine, draw)
            if not _applies(name, scenario):
                return f"none: {name}"
            RELATIONS[name][0](engine, scenario, draw, folder)
        except fs.errors.FastsimError as error:
            trial.refuse_unclear(str(error))
            return f"refused: {name}: {error}"
        except AssertionError as error:
            raise AssertionError(f"{name} of {scenario.policy}, {scenario.queue}: {error}") from error
    return "valid"


def prepare(engine: str) -> Trial:
    """A trial of one engine."""
    return partial(tried, engine, trial.folder("relations"))


TARGETS: dict[str, Callable[[], Trial]] = {f"relations of {engine}": partial(prepare, engine) for engine in ENGINES}
"""Trials by name."""
