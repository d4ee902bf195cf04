"""What is said between an engine for jobs and a policy: the view of the jobs, the answer, the last complaint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import Allocation, Floats, PairRates, RoundView, SharePlan
from fastsim.errors import PolicyError


def view_of(
    rows: npt.NDArray[Any], setting: Setting, now_s: float, price__g: Floats, tenants: Sequence[str],
    partner_rates: PairRates | None = None,
) -> RoundView:  # fmt: skip
    """What a policy sees of these records (``GANG``) of active jobs at ``now_s`` seconds; prices in $/h."""
    tenant = tuple("" if code < 0 else tenants[code] for code in rows["tenant"].tolist()) if tenants else ()
    return RoundView(
        setting, now_s, rows["id"].copy(), rows["kind"].astype(np.int64), rows["num_gpu"].astype(np.int64),
        rows["weight"].copy(), rows["submit_s"].copy(), rows["total"] - rows["run"], rows["deadline_s"].copy(),
        price__g.copy(), tenant, partner_rates,
    )  # fmt: skip


def answer(plan: SharePlan, view: RoundView) -> Allocation | None:
    """The policy's shares for these jobs as columns; PolicyError if they are none."""
    found = plan.allocator.allocate(view)
    if found is None:
        return None
    share = np.ascontiguousarray(found.share__rg, np.float64)
    first, second = (np.ascontiguousarray(ids, np.int64) for ids in (found.first, found.second))
    if not (np.isfinite(share).all() and (share >= 0).all() and share.shape == (len(first), len(view.price__g))):
        raise PolicyError("allocation", "shares that are no numbers of 0 or more", "a row of shares by GPU model")
    return Allocation(first, second, share, found.solver_s)
