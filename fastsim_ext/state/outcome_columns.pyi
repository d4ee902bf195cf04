"""Outcome rows split into the columns of the tables ``placements`` and ``jobs``."""

from typing import Any

def add_placements(rows: Any, first: int, room: dict[str, Any], at: int) -> tuple[int, int]:
    """Append the stays that end to the columns of ``room`` from its row ``at`` on; (first row not read, next row)."""

def add_jobs(rows: Any, first: int, states: Any, room: dict[str, Any], at: int) -> tuple[int, int]:
    """Append the pods that end to the columns of ``room`` from its row ``at`` on; (first row not read, next row)."""
