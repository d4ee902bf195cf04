"""Outcome rows taken apart into the columns of the tables ``placements`` and ``jobs``."""

from typing import Any

def placed(rows: Any, first: int, room: dict[str, Any], at: int) -> tuple[int, int]:
    """Add the stays that end to the columns of ``room`` from its row ``at`` on; (first row not looked at, next row)."""

def gone(rows: Any, first: int, states: Any, room: dict[str, Any], at: int) -> tuple[int, int]:
    """Add the pods that end to the columns of ``room`` from its row ``at`` on; (first row not looked at, next row)."""
