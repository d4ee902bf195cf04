"""Reproductions by name of the paper: our figures beside the published ones, with a verdict for every cell."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.errors import InputError, ScenarioError, suggestion
from fastsim.experiments.reproduce.published_numbers import made_figures

if TYPE_CHECKING:
    from fastsim.experiments.many_runs import SharedRuns
    from fastsim.experiments.reproduce.reproduction import Reproduction

MAKERS = {
    "fgd": ("fgd_pwr", "fgd_reproduction"), "pwr": ("fgd_pwr", "pwr_reproduction"),
    "gavel": ("gavel", "gavel_reproduction"), "synergy": ("synergy", "synergy_reproduction"),
    "sia": ("sia_pollux", "sia_reproduction"), "pollux": ("pollux", "pollux_reproduction"),
    "monitor": ("monitored", "monitor_reproduction"),
}  # fmt: skip
"""Module and function of each reproduction."""
PAPERS = tuple(MAKERS)
CHOOSABLE = ("sia", "pollux", "synergy")
"""Papers whose policies may be chosen; the others compare their policies with each other."""
LOADED = ("gavel",)
"""Papers of whose figures a few loads are made, or all (``whole``)."""
SHARING = ("gavel", "sia", "pollux")
"""Papers with figures that need the same long runs."""


def reproduce(
    paper: str, data: str | os.PathLike[str] | None = None, *, quick: bool = False, workers: int = 1,
    policies: Sequence[str] = (), figures: Sequence[str] = (), progress: Callable[[int], None] | None = None,
    shared: SharedRuns | None = None, whole: bool = False,
) -> Reproduction:  # fmt: skip
    """The figures of a paper, one of ``PAPERS``.

    ``data`` is a folder with openb's lists (``fgd``, ``pwr``), recorded runs (``gavel``, ``synergy``) or lists of jobs
    and measured applications (``sia``, ``pollux``); recorded orders and published curves in it are used. Without
    ``data``, pods and jobs are generated, which ``source`` notes. ``quick`` runs the first trace, load and seeds only,
    ``whole`` every load of a figure of one of ``LOADED``, of which it is a few otherwise.
    ``policies`` selects policies of one of ``CHOOSABLE``; those that are not in the paper have no published figure.
    ``figures`` selects figures by their names in :func:`~fastsim.experiments.reproduce.published_numbers.figure_table`.
    ``progress`` is called with the number of finished runs. Runs in ``shared`` are not made again, and new ones of
    the papers in ``SHARING`` are added to it.
    """
    folder, maker = _folder(paper, data), MAKERS[paper][1]
    options = {**_chosen(paper, policies, quick, whole), **({"shared": shared} if paper in SHARING else {})}
    reproduction: Reproduction = getattr(_module(paper), maker)(
        folder, quick, workers, progress, figures=made_figures(paper, figures), **options
    )
    return reproduction


def run_count(
    paper: str, data: str | os.PathLike[str] | None = None, quick: bool = False, policies: Sequence[str] = (),
    figures: Sequence[str] = (), whole: bool = False,
) -> int:  # fmt: skip
    """Number of runs of :func:`reproduce`."""
    folder, wanted = _folder(paper, data), made_figures(paper, figures)
    options = _chosen(paper, policies, quick, whole)
    return int(_module(paper).run_count(folder, paper, quick, **options, figures=wanted))


def _chosen(paper: str, policies: Sequence[str], quick: bool, whole: bool) -> dict[str, Any]:
    """Keyword arguments of the paper's functions; PolicyError for an unknown policy."""
    from fastsim.experiments.reproduce.reproduction import plain_name

    if policies and paper not in CHOOSABLE:
        expected = f"none: only those of {', '.join(CHOOSABLE)} can be chosen"
        raise ScenarioError("policy", ", ".join(policies), expected)
    if whole and (quick or paper not in LOADED):
        found = "quick" if quick else paper
        raise ScenarioError("whole", found, f"one of {', '.join(LOADED)}, and not quick")
    chosen: dict[str, Any] = {"whole": True} if whole else {}
    return chosen | ({"policies": tuple({plain_name(text): text for text in policies}.values())} if policies else {})


def _module(paper: str) -> Any:
    return import_module(f"fastsim.experiments.reproduce.{MAKERS[paper][0]}")


def check_paper(paper: str) -> None:
    """ScenarioError for a name that is not in ``PAPERS``."""
    if paper not in PAPERS:
        raise ScenarioError("reproduce", repr(paper), f"one of {', '.join(PAPERS)}", suggestion(paper, PAPERS))


def _folder(paper: str, data: str | os.PathLike[str] | None) -> Path | None:
    check_paper(paper)
    if data is not None and not Path(data).is_dir():
        raise InputError(os.fspath(data), "no such folder", "a folder with the paper's data")
    return None if data is None else Path(data)
