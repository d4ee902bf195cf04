"""Checkpoints with one value changed and a right checksum: each is refused, or its run ends as a valid one."""

from __future__ import annotations

import atexit
import contextlib
import copy
import dataclasses
import io
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.foundation.object_cache import OBJECTS
from tests.fuzz.trial import Trial

SLOW = "gavel?jobs=16&rate_per_hour=8&priorities=true&seed=3"
PODS = {"cluster": "openb:9", "workload": "synth:openb?pods=600&seed=4&rate_per_hour=20", "checkpoint_pods": 400}
RUNS: dict[str, dict[str, Any]] = {
    "pods": {**PODS, "policy": "fgd", "queue": "fifo-skip", "sample_s": 2000.0, "record": "summary"},
    "rules": {
        **PODS, "policy": "best_fit", "queue": "las_skip", "failures": "mtbf=20000,mttr=2000",
        "on_node_loss": "requeue", "checkpoint_every_s": 100.0, "preempt": "priority",
    },
    "shares": {
        "cluster": "gavel:2:2:2", "policy": "max_min_fairness(mode=base)", "workload": f"synth:{SLOW}",
        "checkpoint_pods": 8,
    },
    "packed": {
        "cluster": "gavel:2:2:2", "policy": "max_min_fairness(mode=packed)", "workload": f"synth:{SLOW}",
        "checkpoint_pods": 8, "record": "summary",
    },
    "orders": {"cluster": "gavel:4:4:4", "policy": "srtf", "workload": f"synth:{SLOW}", "checkpoint_pods": 8},
    "pollux": {"cluster": "sia:1:0:1", "workload": "synth:sia?jobs=8", "policy": "pollux", "checkpoint_pods": 5,
               "until_s": 1100.0},
    "sia": {"cluster": "sia:1:0:1", "workload": "synth:sia?jobs=8", "policy": "sia", "checkpoint_pods": 5,
            "until_s": 1500.0, "record": "summary"},
}  # fmt: skip
"""Runs with checkpoints, by engine."""
NUMBERS = (-1, 0, 1, 2, 7, -2, 255, 1 << 16, -(1 << 31), (1 << 31) - 1, (1 << 62) + 1, -(1 << 63))
FLOATS = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e300, -1e300, 5e-324, 1e15)
LEAVES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    1 << 31,
    1 << 63,
    10**400,
    1.5,
    -1.0,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    {},
)
STORED = ("note", "checksums")
"""Parts of a header that are inputs of their own, or nothing but notes."""


def changed(state: RunState, draw: random.Random) -> tuple[RunState, str]:
    """The state with one change, and what it is."""
    if draw.random() < 0.3:
        return changed_meta(state, draw)
    name = draw.choice(sorted(state.arrays))
    array = state.arrays[name].copy()
    how = draw.choice(("word", "word", "word", "float", "float", "swap", "dtype", "shape", "gone"))
    arrays = dict(state.arrays)
    if how == "gone":
        del arrays[name]
    elif how == "dtype":
        arrays[name] = array.astype(draw.choice((np.float64, np.int8, np.uint64, "S8", "M8[s]", bool)))
    elif how == "shape":
        arrays[name] = draw.choice(
            (array[:-1], array.reshape(1, *array.shape), np.concatenate([array, array]), array[:0])
        )
    elif array.size:
        arrays[name], how = changed_values(array, how, draw)
    return dataclasses.replace(state, arrays=arrays), f"{name}: {how}"


def changed_values(array: Any, how: str, draw: random.Random) -> tuple[Any, str]:
    """The array with one word of its bytes changed, or two words swapped."""
    wide = 8 if how == "float" or array.dtype.itemsize == 8 or draw.random() < 0.5 else 4
    if array.nbytes % wide:
        wide = array.dtype.itemsize
    kind = {8: np.float64 if how == "float" else np.int64, 4: np.int32}.get(wide, array.dtype)
    words = np.ascontiguousarray(array).reshape(-1).view(kind)
    at = draw.randrange(len(words))
    if how == "swap":
        other = draw.randrange(len(words))
        words[[at, other]] = words[[other, at]]
        return array, f"swap {at} and {other} of {words.dtype}"
    value = draw.choice(FLOATS) if kind is np.float64 else draw.choice(NUMBERS)
    with np.errstate(all="ignore"):
        words[at] = np.array(value).astype(kind)
    return words.view(array.dtype).reshape(array.shape), f"{words.dtype} {at} of {len(words)} = {value}"


def changed_meta(state: RunState, draw: random.Random) -> tuple[RunState, str]:
    """The state with one value of its header changed or taken away."""
    meta = dict(state.meta)
    at: Any = meta
    path: list[Any] = []
    while True:
        keys = [key for key in (at if isinstance(at, dict) else range(len(at))) if path or key not in STORED]
        key = draw.choice(keys)
        path.append(key)
        part = at[key]
        at[key] = dict(part) if isinstance(part, dict) else list(part) if isinstance(part, list) else part
        if not isinstance(part, dict | list) or not part or draw.random() < 0.15:
            break
        at = at[key]
    if isinstance(at, dict) and draw.random() < 0.2:
        del at[key]
        return dataclasses.replace(state, meta=meta), f"{path}: gone"
    at[key] = value = copy.deepcopy(draw.choice(LEAVES))
    return dataclasses.replace(state, meta=meta), f"{path}: {str(value)[:40]}"


def prepare(engine: str) -> Trial:
    """A trial of checkpoints of one engine."""
    base = Path(tempfile.mkdtemp(prefix=f"fuzz-{engine}-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fs.simulate(**RUNS[engine], out=base / "run", keep_checkpoint=True)
    work = working_folder(base / "run")
    return partial(tried, base, work, RunState.read(work / STATE))


def tried(base: Path, work: Path, state: RunState, seed: int) -> str:
    """Resume one changed checkpoint."""
    again, what = changed(state, random.Random(seed))
    place = base / "again"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(work, place / "run.checkpoint")
    again.write(place / "run.checkpoint" / STATE)
    # No case changes the jobs; pods are read anew, as a run reads them from a stream.
    OBJECTS.cache_for(None if state.engine == "pods" else str(base))
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = exit_code(["resume", str(place / "run")])
    lines = [line for line in err.getvalue().splitlines() if "warning:" not in line]
    if code == 0:
        return "valid" if not lines else f"{what}: 0 with {lines}"
    assert code in (1, 2) and len(lines) == 1 and "internal error" not in lines[0], (what, code, lines)
    return f"refused: {what}: {lines[0]}"


TARGETS: dict[str, Callable[[], Trial]] = {f"checkpoint of {name}": partial(prepare, name) for name in RUNS}
"""Trials by name."""
