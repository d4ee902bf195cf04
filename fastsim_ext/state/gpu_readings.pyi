"""Present readings of every GPU: sums over its pods, and temperature and energy, integrated between changes."""

from typing import Any

DEVICE_FIELDS: tuple[str, ...]

class GpuReadings:
    """Readings of all GPUs; takes arrivals and departures of pods in order of time."""

    gpus: int
    n_starts: int
    present: int
    def __init__(self, device__u: Any, devices: dict[str, Any], phases: dict[str, Any], begin_s: float) -> None:
        """``device__u`` is the device of each GPU; ``devices`` has a row a device, ``phases`` one a phase."""
    def use_profiles(self, columns: dict[str, Any]) -> None:
        """Replace the profiles by columns with further rows; present rows stay the same."""
    def feed(self, rows: dict[str, Any], first: int, sample_s: float) -> int:
        """Process the rows from ``first`` on before a sample; returns the first row after it.

        A departure at the second of the sample comes before it, an arrival after it.
        """
    def read(self, t: float, out: dict[str, Any]) -> None:
        """Write readings of all GPUs at second ``t`` to arrays of ``out``; ``pod_id`` is a GPU's only pod, or -1."""
    def verify(self) -> int:
        """Check that the sums equal those of the stays."""
