"""Records that the compiled rounds hand out as bytes."""

from __future__ import annotations

import numpy as np

GANG = np.dtype(
    [("id", "i8"), ("submit_s", "f8"), ("deadline_s", "f8"), ("weight", "f8"), ("total", "f8"), ("run", "f8"),
     ("cost", "f8"), ("first_s", "f8"), ("finish_s", "f8"), ("gpu_s", "f8"), ("paused_s", "f8"), ("left_s", "f8"),
     ("rounds", "i8"), ("kind", "i4"), ("num_gpu", "i4"), ("failures", "i4"), ("tenant", "i4"), ("restarts", "i4"),
     ("preemptions", "i4"), ("guise", "i4"), ("place", "i4"), ("task", "i4"), ("known", "u1"), ("settled", "u1"),
     ("taken", "u1"), ("holds", "u1"), ("ended", "u1")], align=True,
)  # fmt: skip
"""A job's record in the compiled tables."""
MOMENT = np.dtype(
    [("round", "i8"), ("id", "i8"), ("mate_id", "i8"), ("t", "f8"), ("finish_s", "f8"), ("priority", "f8"),
     ("deficit", "f8"), ("model", "i4"), ("num_gpu", "i4"), ("held", "i8")], align=True,
)  # fmt: skip
"""One candidate in one round."""
