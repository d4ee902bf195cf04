"""Checks of the offers of a decider: whole numbers of active jobs, groups, nodes and GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, Offer
from fastsim.errors import PolicyError, kind_of, short
from fastsim.foundation.limits.quantities import is_whole

LEAST = {"group": -1, "nodes": 1, "gpus": 1}
"""The least number of each field."""


def checked_offers(answer: Any, view: AdaptiveView, setting: AdaptiveSetting, policy: str) -> list[Offer]:
    """The offers that ``offers`` returned, with plain numbers; PolicyError for those that no active job can have."""
    where = f"policy {policy} at {view.now_s:g} s: offers()"
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise PolicyError(where, kind_of(answer), "a list of Offers")
    active, most = {job.id for job in view.jobs}, {"group": len(setting.groups) - 1}
    return [_offer(offer, active, most, f"{where}: offer {number}") for number, offer in enumerate(answer)]


def _offer(offer: Any, active: set[int], most: Mapping[str, int], where: str) -> Offer:
    """One offer."""
    if not isinstance(offer, Offer):
        raise PolicyError(where, kind_of(offer), "an Offer(job, group, nodes, gpus, goodput, value)")
    if not is_whole(offer.job) or offer.job not in active:
        raise PolicyError(f"{where}: job", short(offer.job), "the id of an active job")
    for name, least in LEAST.items():
        value = getattr(offer, name)
        if not is_whole(value) or not least <= value <= most.get(name, value):
            expected = f"a number of {least} to {most[name]}" if name in most else f"a number of {least} or more"
            raise PolicyError(f"{where}: {name}", short(value), expected)
    for name in ("goodput", "value"):
        value = getattr(offer, name)
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise PolicyError(f"{where}: {name}", short(value), "a finite number")
    job, group, nodes, gpus = map(int, (offer.job, offer.group, offer.nodes, offer.gpus))
    return Offer(
        job=job,
        group=group,
        nodes=nodes,
        gpus=gpus,
        goodput=float(offer.goodput),
        value=float(offer.value),
        kept=bool(offer.kept),
    )
