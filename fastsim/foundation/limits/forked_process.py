"""Processes forked after a run: threads of polars are missing there, and its first query would wait for ever."""

from __future__ import annotations

import os

from fastsim.errors import FastsimError


class _Process:
    """Whether a run began in this process, and whether one began in its parent before the fork."""

    began = False
    parent_began = False


def refuse_forked() -> None:
    """FastsimError in a process that was forked after a run; otherwise note that a run begins."""
    if _Process.parent_began:
        raise FastsimError(
            "process: found one that was forked after a run, in which threads of libraries are missing, expected a "
            "fresh process; use multiprocessing.get_context('spawn'), or simulate_many(workers=...)"
        )
    _Process.began = True


def _note_fork() -> None:
    _Process.parent_began = _Process.parent_began or _Process.began


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
