"""Records that the compiled loop of ordered rounds hands out as bytes."""

from __future__ import annotations

import numpy as np

TURN = np.dtype(
    [("round", "i8"), ("jobs", "i8"), ("running", "i8"), ("gpus", "i8"), ("at_fair", "i8"), ("t", "f8"),
     ("cpu_alloc", "f8"), ("memory_alloc", "f8"), ("cpu_used", "f8"), ("memory_used", "f8"), ("cpu_demand", "f8"),
     ("memory_demand", "f8")], align=True,
)  # fmt: skip
"""One round: jobs there and at work, GPUs held; milli-CPU and MiB held, of use, and needed by those at work."""
