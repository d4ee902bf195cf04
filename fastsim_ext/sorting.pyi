"""A stable sort of rows by keys of several terms: what is equal stays as it was, what is sorted is only looked at."""

from typing import Any

def in_order(key__nk: Any, terms: int) -> list[int]:
    """Numbers of the rows in the order of the first ``terms`` of their ``MOST_TERMS`` terms."""
