"""Goodput by hand: the formulas of `fastsim_ext.adaptive.goodput`, one configuration at a time."""

from __future__ import annotations

import math

import numpy as np

from fastsim.performance.goodput import BatchLimits, Noise, Perf

TINY = 1e-8
CANDIDATES = 50


def throughput(perf: Perf, nodes: int, replicas: int, atomic: int, accum: int, tiny: float = TINY) -> float:
    """Samples/s of all GPUs together."""
    turn_s = perf.alpha_c + perf.beta_c * atomic
    fixed_s, each_s = TINY, TINY
    if nodes > 1:
        fixed_s, each_s = perf.alpha_n, perf.beta_n
    elif replicas > 1:
        fixed_s, each_s = perf.alpha_r, perf.beta_r
    network_s = fixed_s + each_s * max(replicas - 2, tiny)
    last_s = math.exp(math.log(turn_s**perf.gamma + network_s**perf.gamma) / perf.gamma)
    return replicas * atomic * (accum + 1) / (accum * turn_s + last_s)


def efficiency(noise: Noise, batch: int) -> float:
    """What a sample teaches, relative to one in a batch of the initial size."""
    scale = batch / noise.init_batch
    expected = noise.var / scale + noise.sqr
    return ((noise.var + noise.sqr) / expected if expected > 0 else 1.0) / scale


def candidates(start: float, stop: float, float32: bool) -> list[float]:
    """Total batch sizes evenly spaced in the logarithm, ends included."""

    def rounded(value: float) -> float:
        return float(np.float32(value)) if float32 else value

    first = rounded(math.log10(start))
    step = rounded(rounded(rounded(math.log10(stop)) - first) / (CANDIDATES - 1))
    inner = [rounded(10.0 ** rounded(rounded(i * step) + first)) for i in range(1, CANDIDATES - 1)]
    return [start, *inner, stop]


def split(noise: Noise, limits: BatchLimits, replicas: int, batch: float, float32: bool) -> tuple[int, int]:
    """Samples a GPU takes at once and extra turns that make up a batch size."""
    local, turns = batch / replicas, batch / replicas / limits.high - TINY
    if float32:
        local = float(np.float32(batch) / np.float32(replicas))
        turns = float(np.float32(local) / np.float32(limits.high) - np.float32(TINY))
    accum = math.ceil(turns) - 1 if limits.accumulation else 0
    if limits.accumulation and replicas == 1 and local > noise.init_batch + TINY:
        accum = max(accum, 1)
    return math.ceil(local / (accum + 1) - TINY), accum


def best(perf: Perf, noise: Noise, limits: BatchLimits, nodes: int, replicas: int) -> tuple[float, int, int]:
    """Goodput, samples a GPU takes at once and extra turns of the best batch size; the first of equals."""
    float32 = limits.float32 and limits.tuned
    tiny = float(np.float32(TINY)) if limits.float32 else TINY
    start = max(noise.init_batch, limits.low * replicas) if limits.tuned else limits.max_batch
    found = []
    for batch in candidates(float(start), float(limits.max_batch), float32):
        atomic, accum = split(noise, limits, replicas, batch, float32)
        goodput = 0.0
        if limits.low <= atomic <= limits.high:
            goodput = throughput(perf, nodes, replicas, atomic, accum, tiny)
            goodput *= efficiency(noise, replicas * atomic * (accum + 1))
            goodput = 0.0 if math.isnan(goodput) else goodput
        found.append((goodput, atomic, accum))
    return max(found, key=lambda choice: choice[0])


def staged(perf: Perf, noise: Noise, max_batch: int, stages: int, micro: int, nodes: int, pipelines: int) -> float:
    """Goodput of pipelines, in a unit of its own."""
    if pipelines * micro > max_batch:
        return 0.0
    forward_s = perf.alpha_c + perf.beta_c
    fixed_s, each_s = (perf.alpha_n, perf.beta_n) if nodes > 1 else (perf.alpha_r, perf.beta_r)
    if nodes <= 1 and pipelines <= 1:
        fixed_s, each_s = TINY, TINY
    network_s = fixed_s + each_s * max(pipelines - 2, TINY)
    step_s = 3 * ((stages - 1) * forward_s + micro * forward_s) + network_s
    return 100 * (pipelines * micro / step_s) * efficiency(noise, pipelines * micro)
