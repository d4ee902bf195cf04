"""Papers made again by one call: ours beside the published figures, with deviation and verdict for every cell."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fastsim.errors import InputError, ScenarioError
from fastsim.spelling import suggestion

if TYPE_CHECKING:
    from fastsim.reproduction import Reproduction

PAPERS = ("fgd", "pwr", "gavel", "monitor")


def reproduce(
    paper: str, data: str | os.PathLike[str] | None = None, *, quick: bool = False, workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Reproduction:  # fmt: skip
    """The figures of a paper, one of ``PAPERS``.

    ``data`` is a folder with openb's lists (``fgd``, ``pwr``), in which recorded orders and published curves are used
    if they are there; without it pods are generated, and said to be. ``quick`` plays the first trace, load and seeds.
    ``progress`` is told how many runs are done.
    """
    folder = _folder(paper, data)
    if paper == "gavel":
        from fastsim.gavel_reproduction import gavel_reproduction

        return gavel_reproduction(folder, quick, workers, progress)
    if paper == "monitor":
        from fastsim.monitor_reproduction import monitor_reproduction

        return monitor_reproduction(folder, quick, workers, progress)
    from fastsim.placement_reproductions import fgd_reproduction, pwr_reproduction

    return {"fgd": fgd_reproduction, "pwr": pwr_reproduction}[paper](folder, quick, workers, progress)


def run_count(paper: str, data: str | os.PathLike[str] | None = None, quick: bool = False) -> int:
    """How many runs :func:`reproduce` makes."""
    folder = _folder(paper, data)
    if paper == "gavel":
        from fastsim import gavel_reproduction

        return gavel_reproduction.run_count(quick)
    if paper == "monitor":
        from fastsim import monitor_reproduction

        return monitor_reproduction.run_count(quick)
    from fastsim import placement_reproductions

    return placement_reproductions.run_count(folder, paper, quick)


def _folder(paper: str, data: str | os.PathLike[str] | None) -> Path | None:
    if paper not in PAPERS:
        raise ScenarioError("reproduce", repr(paper), f"one of {', '.join(PAPERS)}", suggestion(paper, PAPERS))
    if data is not None and not Path(data).is_dir():
        raise InputError(os.fspath(data), "no such folder", "a folder with the paper's data")
    return None if data is None else Path(data)
