"""Plays runs and prints digests of what they leave; reads no module of the tests, as another revision plays it, too.

Runs come as JSON on standard input, by name; digests leave as JSON on standard output.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import fastsim as fs
from fastsim.errors import FastsimError

HEADERS = ("meta.npy", "header.npy")
"""Entries of a checkpoint that hold wall times and versions."""
TIMED = ("wall", "per_s", "solver", "overhead", "decision_ms")
"""Words in the names of columns that are measured, not simulated."""
Digests = dict[str, str]


def digest(content: bytes) -> str:
    """A short SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def tables_of(result: fs.Result) -> Digests:
    """Digests of each table of a result; the refusal in place of one that the run did not record."""
    found = {}
    for name in ("summary", "jobs", "placements", "timeline", "stages", "telemetry"):
        try:
            frame = result.table(name)
        except (FastsimError, KeyError) as error:
            found[name] = str(error)
            continue
        kept = [column for column in frame.columns if not any(word in column for word in TIMED)]
        stream = io.BytesIO()
        frame.select(kept).rechunk().write_ipc(stream, compression="uncompressed")
        found[name] = digest(stream.getvalue())
    return found


def arrays_of(folder: Path) -> Digests:
    """Digests of each array of the checkpoint beside a run's folder."""
    with zipfile.ZipFile(folder.with_suffix(".checkpoint") / "state.npz") as state:
        names = sorted({*state.namelist()} - {*HEADERS})
        return {f"checkpoint {name}": digest(state.read(name)) for name in names}


def left_by(run: dict[str, Any], folder: Path) -> Digests:
    """Digests of what a run leaves, with a fork and a resumed run if it keeps a checkpoint; the refusal if it fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = _played(run, folder)
        except FastsimError as error:
            found = {"refused": str(error)}
        except Exception as error:  # of a library or an older revision: compared like any other end
            found = {"failed": f"{type(error).__name__}: {error}"}
    return found | {"warnings": "\n".join(sorted({str(one.message) for one in caught}))}


def _played(run: dict[str, Any], folder: Path) -> Digests:
    if "checkpoint_pods" not in run:
        return tables_of(fs.simulate(**run))
    out = folder / "run"
    found = tables_of(fs.simulate(**run, out=out, keep_checkpoint=True)) | arrays_of(out)
    further = {"fork": fs.fork(out, folder / "fork"), "resumed": fs.resume(out, overwrite=True)}
    return found | {f"{way} {name}": value for way, one in further.items() for name, value in tables_of(one).items()}


def main() -> None:
    """Play all runs of standard input."""
    found = {}
    for name, run in json.load(sys.stdin).items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = {part: value.replace(folder, "FOLDER") for part, value in left_by(run, Path(folder)).items()}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
