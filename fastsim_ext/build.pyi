"""Options of this build of the compiled packages."""

CHECKED: bool
"""Bounds checks, Python division and verify() after every event."""

FLAGS: str
"""Compiler flags, separated by blanks."""

def product_sum(a: float, b: float, c: float) -> float:
    """a*b + c as the kernels round it: twice, never once as a fused multiply-add would."""
