"""What every GPU reports now: sums over the pods on it, and temperature and energy, integrated between changes."""

from typing import Any

DEVICE_FIELDS: tuple[str, ...]

class GpuReadings:
    """Feed it who comes and goes in order of time, and look at all GPUs whenever you like."""

    gpus: int
    n_edges: int
    present: int
    def __init__(self, device__u: Any, devices: dict[str, Any], phases: dict[str, Any], begin_s: float) -> None:
        """``device__u`` is the device of every GPU; ``devices`` has a row each, ``phases`` all phases there are."""
    def phases(self, columns: dict[str, Any]) -> None:
        """Take further profiles: the columns of before with more rows."""
    def feed(self, rows: dict[str, Any], first: int, look_s: float) -> int:
        """Take rows from ``first`` on up to a look; the number of the first that comes after it.

        A look sees who left until then, and not yet who comes then.
        """
    def look(self, t: float, out: dict[str, Any]) -> None:
        """Readings of all GPUs at second ``t`` into the arrays of ``out``; ``who`` is a GPU's only pod, or -1."""
    def verify(self) -> int:
        """The sums are those of the stays; AssertionError if not."""
