"""A round of adaptive jobs explained: the configurations that the policy compared, the chosen one, and why no better.

Policies whose decider has ``offers`` say what they compare (Sia, Pollux). Of others a job has one row: its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fastsim.decisions.rounds.columns import RUNS, WAITS, counted
from fastsim.decisions.rounds.replayed_round import Ids, PlayedRound, RoundReplay, Row
from fastsim.engine.adaptive.driver import AdaptiveDriver
from fastsim.engine.adaptive.offer_checks import checked_offers
from fastsim.engine.adaptive.plan import Offer, Place

BEST = 1e-5
"""Values that are not further apart are as good: bonuses that decide among equal choices are smaller."""


def adaptive_rows(driver: AdaptiveDriver, t_s: float, ids: Ids) -> PlayedRound:
    """The round at ``t_s`` seconds."""
    offers: list[Offer] = []

    def ask() -> None:
        if driver.loop.active and driver.loop.now_s + driver.setting.round_s > t_s:
            offers.extend(_offers(driver))
        driver.decide()

    replay = RoundReplay(driver, t_s, lambda: driver.loop.now_s + driver.setting.round_s, ask=ask)
    replay.play()
    played = AdaptiveRound(driver, ids)
    for offer in offers:
        played.offers.setdefault(offer.job, []).append(offer)
    rows = {job.id: [*played.rows(job.id)] for job in driver.loop.active}
    return PlayedRound(driver.loop.rounds - 1, replay.began_s, rows)


def _offers(driver: AdaptiveDriver) -> list[Offer]:
    """The offers of the next decision; none from a decider without a method ``offers``."""
    decider, view = driver.plan.decider, driver.view()
    if not hasattr(decider, "offers"):
        return []
    name = driver.plan.policy or type(decider).__qualname__
    return checked_offers(decider.offers(view), view, driver.setting, name)


@dataclass
class AdaptiveRound:
    """The places of a round, and the offers that each job had."""

    driver: AdaptiveDriver
    ids: Ids
    offers: dict[int, list[Offer]] = field(default_factory=dict)

    @cached_property
    def free__g(self) -> list[int]:
        """GPUs of each group that no job has."""
        free = [group.gpus for group in self.driver.setting.groups]
        for job in self.driver.loop.active:
            if place := self.place(job.id):
                free[place.group] -= len(place.nodes)
        return free

    def place(self, job: int) -> Place | None:
        """The place of a job; None if it waits."""
        return self.driver.places.get(job)

    def room(self, job: int, group: int) -> int:
        """GPUs that no other job has: of a group, or of the one with most of them (``group`` < 0)."""
        groups = range(len(self.free__g)) if group < 0 else [group]
        place = self.place(job)
        return max(self.free__g[g] + (len(place.nodes) if place and place.group == g else 0) for g in groups)

    # ------------------------------------------------------------------ rows

    def rows(self, job: int) -> Iterator[Row]:
        """The rows of a job: the best configurations first, or one row if the policy has no offers."""
        offers = sorted(self.offers.get(job, ()), key=lambda offer: (-offer.value, offer.gpus, offer.group))
        chosen = self.chosen(job, offers)
        if chosen is None:
            yield self.unoffered(job)
        for offer in offers:
            place = self.place(job) if offer is chosen else None
            yield {
                "state": RUNS if self.place(job) else WAITS, "gpu_model": self.model(job, offer, offer is chosen),
                "nodes": offer.nodes, "goodput": offer.goodput, "value": offer.value, "asks": offer.gpus,
                "free": self.room(job, place.group if place else offer.group), "gpus": offer.gpus if place else 0,
                "why": self.why(job, offer, chosen, offers),
            }  # fmt: skip

    def chosen(self, job: int, offers: Sequence[Offer]) -> Offer | None:
        """The offer that is the place of a job; None if it waits, or has what no offer was."""
        place = self.place(job)
        if place is None:
            return None
        nodes = len({*place.nodes})
        same = [offer for offer in offers if offer.gpus == len(place.nodes) and offer.group in (-1, place.group)]
        return min(same, key=lambda offer: abs(offer.nodes - nodes), default=None)

    def model(self, job: int, offer: Offer, chosen: bool) -> str | None:
        """The GPU model of an offer; None if it may be any."""
        place = self.place(job)
        group = place.group if chosen and place else offer.group
        return None if group < 0 else self.driver.setting.groups[group].gpu_model

    def unoffered(self, job: int) -> Row:
        """The row of a job's place, or of its wait, apart from all offers."""
        place, request = self.place(job), self.driver.jobs[job].num_gpu
        gpus = len(place.nodes) if place else 0
        model = self.driver.setting.groups[place.group].gpu_model if place else None
        room = self.room(job, place.group if place else -1)
        return {
            "state": RUNS if place else WAITS, "gpu_model": model, "nodes": len({*place.nodes}) if place else None,
            "goodput": None, "value": None, "asks": request, "free": room, "gpus": gpus,
            "why": f"runs on {counted(gpus, 'GPU')} of {model}" if place else self.waiting(job, request, room),
        }  # fmt: skip

    def waiting(self, job: int, request: int, room: int) -> str:
        """Why a job has no GPUs."""
        offers = self.offers.get(job, ())
        if offers and max(offer.value for offer in offers) <= BEST:
            return "no configuration is worth more than to wait"
        if offers:
            return "the policy gives it no GPUs, since other jobs have more use for them"
        if room < request:
            return f"asks for {counted(request, 'GPU')}, and {room:,} of one model {'is' if room == 1 else 'are'} left"
        return f"the policy gives it no GPUs, though {room:,} of one model {'is' if room == 1 else 'are'} left"

    # ------------------------------------------------------------------ why

    def why(self, job: int, offer: Offer, chosen: Offer | None, offers: Sequence[Offer]) -> str:
        """Why an offer was chosen or not."""
        model = self.model(job, offer, offer is chosen) or "one model"
        if offer is chosen:
            better = sum(other.value > offer.value + BEST for other in offers)
            more = f"and {counted(better, 'configuration')} would be" if better else "of all configurations"
            return f"runs on {counted(offer.gpus, 'GPU')} of {model}, {more} worth {'more' if better else 'most'} to it"
        if offer.kept:
            return "its restart is not over, and until then it keeps what it has"
        if offer.value <= BEST:
            return "is worth no more than to wait"
        if offer.gpus > self.total(offer.group):
            return f"needs {counted(offer.gpus, 'GPU')}, and there are {self.total(offer.group):,} of {model}"
        if chosen is not None and offer.value <= chosen.value + BEST:
            equal = offer.value >= chosen.value - BEST
            return "is worth as much as the chosen one" if equal else "is worth less than the chosen one"
        if self.smaller(offer, offers):
            return f"is worth no more than fewer GPUs of {model}"
        room = self.room(job, offer.group)
        if offer.gpus > room:
            left = f"of which the other jobs leave {room:,}"
            return f"needs {counted(offer.gpus, 'GPU')} of {model}, {left}, as the rest is worth more to them"
        return "fits beside the other jobs, but the policy found no better state of the whole cluster with it"

    def total(self, group: int) -> int:
        """GPUs of a group; of the largest one for ``group`` < 0."""
        groups = self.driver.setting.groups
        return max(one.gpus for one in groups) if group < 0 else groups[group].gpus

    def smaller(self, offer: Offer, offers: Sequence[Offer]) -> bool:
        """Whether fewer GPUs of the same model are worth as much."""
        return any(
            other.group == offer.group and other.gpus < offer.gpus and other.value >= offer.value for other in offers
        )
