"""Folders of saved runs with changed tables and records, read by the verbs that take them."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import fastsim as fs
from fastsim.cli.main import exit_code
from tests.engines import RUNS
from tests.fuzz import mutation, trial
from tests.fuzz.trial import Trial

VERBS: tuple[tuple[str, ...], ...] = (
    ("compare", "{run}", "{other}"),
    ("explain", "{run}", "--sample", "2"),
    ("report", "{run}", "--markdown", "{out}.md", "--force"),
    ("audit", "{run}"),
    ("plot", "jct_cdf", "{run}", "-o", "{out}.json"),
    ("export", "{run}", "-o", "{out}.yaml"),
)
"""Verbs that read a saved run, with their arguments."""
_VALUES = (None, -1, 0, 3, 1 << 31, 1 << 62, -(1 << 63), 1e300, -1.5, float("nan"), float("inf"), "x", "")
_KINDS = (pl.Int8, pl.Int64, pl.Float64, pl.String, pl.UInt64, pl.Boolean, pl.List(pl.Int64))


def change(run: Path, draw: random.Random) -> str:
    """Change one file of the run; what was changed."""
    path = draw.choice(sorted(path for path in run.iterdir() if path.suffix in (".json", ".parquet")))
    if draw.random() < 0.15:
        data = bytearray(path.read_bytes())
        if draw.random() < 0.5:
            del data[draw.randrange(len(data)) :]
        else:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        return f"bytes of {path.name}"
    if path.suffix == ".json":
        path.write_text(mutation.json_text(json.loads(path.read_text()), draw))
        return f"a part of {path.name}"
    frame = pl.read_parquet(path)
    name = draw.choice(frame.columns)
    how = draw.random()
    if how < 0.1:
        frame = frame.drop(name)
    elif how < 0.2:
        frame = frame.rename({name: "x"})
    elif how < 0.35:
        with contextlib.suppress(pl.exceptions.PolarsError):
            frame = frame.with_columns(pl.col(name).cast(draw.choice(_KINDS), strict=False))
    elif how < 0.45:
        frame = frame.sample(fraction=1.0, shuffle=True, seed=draw.randrange(1000)) if len(frame) else frame
    elif how < 0.55:
        frame = pl.concat([frame, frame[: draw.randint(0, 3)]]) if draw.random() < 0.5 else frame[draw.randint(0, 3) :]
    elif len(frame):
        at, value = draw.randrange(len(frame)), draw.choice(_VALUES)
        with contextlib.suppress(pl.exceptions.PolarsError, TypeError, OverflowError):
            new = pl.Series([value], strict=False).cast(frame.schema[name], strict=True)
            rows = pl.int_range(pl.len()) == at
            frame = frame.with_columns(pl.when(rows).then(pl.lit(new).first()).otherwise(name).alias(name))
    frame.write_parquet(path)
    return f"{path.name}: {name}"


def prepare(engine: str) -> Trial:
    """A trial of saved runs of one engine."""
    base = trial.folder("saved")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fs.simulate(**RUNS[engine], out=base / "run")
    return partial(tried, base)


def tried(base: Path, seed: int) -> str:
    """Read one changed run with one verb."""
    draw, run = random.Random(seed), base / "changed"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(base / "run", run)
    what = change(run, draw)
    words = {"run": str(run), "out": str(base / "out"), "other": str(base / "run")}
    verb = [word.format(**words) for word in draw.choice(VERBS)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
        code = exit_code(verb)
    lines: list[Any] = [line for line in err.getvalue().splitlines() if "warning:" not in line]
    if code == 0:
        assert not lines, (what, verb[0], lines)
        return "valid"
    if verb[0] == "audit" and code == 1 and not lines:  # the audit's own findings are its output
        return f"found: {what}"
    assert code in (1, 2) and len(lines) == 1, (what, verb[0], code, lines)
    trial.refuse_unclear(lines[0])
    return f"refused: {what}, {verb[0]}: {lines[0]}"


TARGETS: dict[str, Callable[[], Trial]] = {f"saved run of {name}": partial(prepare, name) for name in RUNS}
"""Trials by name."""
