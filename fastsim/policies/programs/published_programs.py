"""Programs as Gavel states them to its solver, where another statement of the same program ends elsewhere.

An interior-point method ends inside the face of optima, and where depends on rows that do not limit anything. Rates
are those of whole gangs; every job is a job of its own. None where the method does not converge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastsim.engine.shares.plan import Floats, Ints
from fastsim_ext.solvers import block_path

Flags = npt.NDArray[np.bool_]


def least_ratio(rate__jg: Floats, use__j: Ints, gpus__g: Ints, past__j: Floats, left__j: Floats) -> Floats | None:
    """Shares at which the largest of ``past + left / rate`` is least, one over the rate being a cone."""
    jobs, models = rate__jg.shape
    every, one = np.arange(jobs), np.ones(jobs)
    row = np.zeros((2 * jobs, models + 1))
    row[::2, :models], row[1::2, models] = 1.0, left__j
    # One job alone has no largest to be compared with: its time is the cost itself.
    alone = jobs == 1
    if alone:
        row = row[::2]
    cost = np.zeros((jobs, models + 1))
    cost[:, models] = left__j if alone else 0.0
    found = optimum(
        use__j=use__j,
        gpus__g=gpus__g,
        job__r=every if alone else every.repeat(2),
        row__rv=row,
        lift__r=np.zeros(1) if alone else np.stack([0 * one, -one], axis=1).ravel(),
        room__r=one if alone else np.stack([one, -past__j], axis=1).ravel(),
        cost__jv=cost,
        price=0.0 if alone else 1.0,
        rate__jg=rate__jg,
    )
    return None if found is None else np.clip(found[:, :models], 0.0, 1.0)


def last_rise(
    rate__jg: Floats, use__j: Ints, gpus__g: Ints, level__j: Floats, factor__j: Floats, rising__j: Flags
) -> Floats | None:
    """Shares with rates at ``level`` or above and the largest least ``(rate - level) * factor`` of rising jobs."""
    jobs, models = rate__jg.shape
    every, alone = np.arange(jobs), jobs == 1
    rises, still = np.flatnonzero(rising__j)[: 0 if alone else None], np.flatnonzero(~rising__j)
    scaled = rate__jg * factor__j[:, None]
    job = np.concatenate([every, every, rises, still])
    # The level has a row of every job: that of a job that does not rise says that it is at most the largest rate.
    row = np.concatenate([np.ones_like(rate__jg), -rate__jg, -scaled[rises], np.zeros((len(still), models))])
    lift = np.concatenate([np.zeros(2 * jobs), np.ones(len(job) - 2 * jobs)])
    most = np.full(len(still), (rate__jg * use__j[:, None]).max())
    room = np.concatenate([np.ones(jobs), -level__j, -(level__j * factor__j)[rises], most])
    order = np.argsort(job, kind="stable")
    cost = -scaled if alone else np.zeros_like(scaled)
    found = optimum(
        use__j=use__j,
        gpus__g=gpus__g,
        job__r=job[order],
        row__rv=row[order],
        lift__r=lift[order],
        room__r=room[order],
        cost__jv=cost,
        price=0.0 if alone else -1.0,
        rate__jg=np.zeros((0, models)),
    )
    return None if found is None else np.clip(found, 0.0, 1.0)


def optimum(
    use__j: Ints, gpus__g: Ints, job__r: Ints, row__rv: Floats, lift__r: Floats, room__r: Floats, cost__jv: Floats,
    price: float, rate__jg: Floats,
) -> Floats | None:  # fmt: skip
    """Columns of each job where the compiled method ends (it explains the program); None if it does not converge."""
    found = np.empty(cost__jv.shape)
    ended = block_path.optimum(
        use__j.astype(np.float64), gpus__g.astype(np.float64), job__r, np.ascontiguousarray(row__rv), lift__r, room__r,
        cost__jv, price, np.ascontiguousarray(rate__jg), found,
    )  # fmt: skip
    return found if ended else None
