"""Job lists that look like those of the Sia and Pollux experiments, without their traces.

A style sets the shares of the applications and the variation of arrivals from hour to hour: round numbers from the
published lists of that name. The request of a job is drawn from the tuned sizes of its application.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from fastsim.errors import ScenarioError
from fastsim.foundation.draws.random_streams import Stream
from fastsim.foundation.limits.knobs import HELD_JOBS
from fastsim.performance.applications.application import Application, TunedConfig, tuned_configs
from fastsim.performance.applications.family import Applications
from fastsim.workload import schema as s
from fastsim.workload.generators.arrivals_and_durations import SeasonalClock, refuse_rate
from fastsim.workload.importers.sia import CATEGORIES, job_list
from fastsim.workload.pod_rows import PodRows


class _Style(NamedTuple):
    share: dict[str, float]
    hour_log_sd: float


STYLES = {
    "philly": _Style({"cifar10": 0.79, "deepspeech2": 0.09, "bert": 0.06, "yolov3": 0.04, "imagenet": 0.02}, 0.4),
    "helios": _Style({"cifar10": 0.82, "deepspeech2": 0.06, "bert": 0.04, "yolov3": 0.05, "imagenet": 0.03}, 0.6),
    "newtrace": _Style({"cifar10": 0.52, "deepspeech2": 0.22, "bert": 0.21, "yolov3": 0.04, "imagenet": 0.01}, 0.6),
}
"""Share of each application, and standard deviation of the logarithm of an hour's arrivals."""
HOUR_CORRELATION = 0.5
"""Correlation of the hourly factor with that of the hour before."""


@dataclass(frozen=True)
class SiaOptions:
    """Parameters of `synth_sia`; see there for their meaning and units."""

    jobs: int
    seed: int
    style: str
    rate_per_hour: float
    copies: int
    tuned: bool
    rigid_share: float
    fixed_batch_share: float
    gpu_model: str
    gpus_per_node: int
    max_gpus: int

    def __post_init__(self) -> None:
        least = {"jobs": 0, "seed": 0, "copies": 1, "gpus_per_node": 1, "max_gpus": 1}
        for name, value in least.items():
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or count < value:
                raise ScenarioError(f"synth.{name}", repr(count), f"a whole number, {value} or more")
        HELD_JOBS.refuse(self.jobs)
        refuse_rate(self.rate_per_hour, self.jobs / self.copies)
        if self.style not in STYLES:
            raise ScenarioError("synth.style", repr(self.style), f"one of {', '.join(STYLES)}")
        shares = self.rigid_share, self.fixed_batch_share
        if not (min(shares) >= 0 and sum(shares) <= 1):
            raise ScenarioError("synth.rigid_share, fixed_batch_share", shares, "shares that add up to 1 at most")


def synth_sia(
    jobs: int = 160,
    seed: int = 0,
    *,
    style: str = "philly",
    rate_per_hour: float = 20.0,
    copies: int = 1,
    tuned: bool = True,
    rigid_share: float = 0.0,
    fixed_batch_share: float = 0.0,
    applications: Applications | str | os.PathLike[str] | None = None,
    gpu_model: str = "rtx",
    gpus_per_node: int = 8,
    max_gpus: int = 18,
) -> PodRows:
    """`jobs` jobs of a style: philly, helios or newtrace; the same seed means the same jobs.

    rate_per_hour: mean arrivals. copies: so many equal jobs at each arrival, for clusters that many times as large.
    tuned: GPUs and batch size are drawn among the tuned sizes below `max_gpus` GPUs on `gpu_model`; otherwise one GPU
    and the initial batch size. rigid_share, fixed_batch_share: parts of the jobs of which a scheduler may change
    nothing, or GPUs only. applications: an `Applications`, or a file of them (default: the ones that ship).
    """
    options = SiaOptions(
        jobs=jobs,
        seed=seed,
        style=style,
        rate_per_hour=rate_per_hour,
        copies=copies,
        tuned=tuned,
        rigid_share=rigid_share,
        fixed_batch_share=fixed_batch_share,
        gpu_model=gpu_model,
        gpus_per_node=gpus_per_node,
        max_gpus=max_gpus,
    )
    family = _family(applications)
    parameters = {**asdict(options), "applications": family.name}
    metadata = {
        "fastsim.source": "synth sia",
        "fastsim.converter": "fastsim synth sia",
        "fastsim.seed": str(seed),
        "fastsim.params": json.dumps(parameters, sort_keys=True),
    }
    return job_list(_columns(options, family), "synth:sia", metadata)


def _columns(options: SiaOptions, family: Applications) -> dict[str, Any]:
    """Columns of the drawn jobs."""
    style, arrivals = STYLES[options.style], -(-options.jobs // options.copies)
    sizes = [_sizes(family[name], options) for name in style.share]
    table = {"hour_factor": [1.0] * 24, "hour_log_sd": style.hour_log_sd, "hour_correlation": HOUR_CORRELATION}
    times = SeasonalClock(options.seed, options.rate_per_hour, table).times(np.zeros(arrivals, np.bool_))
    app = _picks(style.share.values(), options.seed, "sia.application", arrivals)
    which = Stream(options.seed, "sia.size").uniform(arrivals).tolist()
    configs = [sizes[a][int(u * len(sizes[a]))] for a, u in zip(app, which, strict=True)]
    of = (np.arange(options.jobs) // min(options.copies, max(1, options.jobs))).tolist()
    names = [list(style.share)[app[arrival]] for arrival in of]
    columns = {
        s.SUBMIT_S: times[of],
        s.NUM_GPU: [configs[arrival].num_gpu for arrival in of],
        s.WORKLOAD: names,
        s.BATCH_SIZE: [configs[arrival].batch_size for arrival in of],
        s.NATIVE_ID: [f"{name}-{row}" for row, name in enumerate(names)],
    }
    fixed = options.rigid_share, options.fixed_batch_share
    if sum(fixed):
        shares = (1 - sum(fixed), options.fixed_batch_share, options.rigid_share)
        role = _picks(shares, options.seed, "sia.category", arrivals)
        columns[s.TASK_ROLE] = [CATEGORIES[role[arrival]] for arrival in of]
    return columns


def _sizes(app: Application, options: SiaOptions) -> list[TunedConfig]:
    if options.tuned:
        return tuned_configs(app, options.gpu_model, options.gpus_per_node, options.max_gpus)
    return [TunedConfig(math.nan, 1, app.init_batch)]


def _picks(shares: Iterable[float], seed: int, concern: str, count: int) -> list[int]:
    """Positions drawn by their shares."""
    edges = np.cumsum(list(shares))
    positions: list[int] = np.searchsorted(edges[:-1], Stream(seed, concern).uniform(count), "right").tolist()
    return positions


def _family(source: Applications | str | os.PathLike[str] | None) -> Applications:
    if source is None:
        return Applications.default()
    return source if isinstance(source, Applications) else Applications.from_file(source)
