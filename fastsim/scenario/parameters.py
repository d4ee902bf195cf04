"""The fields of a scenario, one line each, for the help of everything that takes them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping

PARAMETERS: Mapping[str, str] = {
    "cluster": "A Cluster, or a text such as openb:50, uniform?nodes=8&gpu=H100 or a file; see Cluster.from_text.",
    "workload": "A Workload, or a text such as synth:openb?pods=1000 or a file; see Workload.from_text.",
    "policy": "A policy, or a text such as fgd, 0.9*fgd + 0.1*pwr or las; fastsim.policies.names() lists them.",
    "seed": "Seed of every random choice of the run, 0 to 2**64 - 1.",
    "typical": "Pods that fragmentation is measured with: a TypicalPods, a Workload or a text. Default: the workload.",
    "queue": "Rule for pods that fit nowhere: drop (they are left out), fifo, priority, drf, easy, conservative, or by "
    "an order: srtf, srsf, las, tiresias, ftf, smallest, tetris. With _skip (fifo_skip, priority_skip, srtf_skip ...) "
    "later pods may pass those that fit nowhere.",
    "gpu_pick": "Rule for the GPUs of a node: best, worst, random, fgd, pwr or dot_product. Default: the policy's.",
    "sample_s": "Least time between rows of the timeline, above 0: seconds or a text such as 5min. Default: 0 s.",
    "until_s": "Simulated time at which the run ends, 0 or more: seconds or a text such as 1h. Default: the last end.",
    "record": "Tables of the result: all, placements, timeline, summary or none; a summary is always there.",
    "deschedule": "Steps of descheduling after the run, texts such as frag_one_pod:0.05 or Deschedule objects.",
    "inflation": "Clones added after the run, up to this many times the pods, 1 or more.",
    "retarget": "Pods that fragmentation is measured with after the run; as typical.",
    "preempt": "Pods that one which fits nowhere may stop: none, or those of lower priority.",
    "on_node_loss": "Pods of a node that fails: lost, or requeue.",
    "checkpoint_every_s": "Time between checkpoints, to which a stopped pod goes back; 0 loses nothing. Default: none.",
    "restart_s": "Time that a restart of a stopped pod or job adds, 0 or more.",
    "quotas": "Most that a tenant may hold: {'anna': {'gpu_milli': 8000}}, or anna:gpu_milli=8000 as a text.",
    "weights": "Weights of tenants for queue=drf: {'anna': 2}, or anna=2 as a text. Default: 1 each.",
    "failures": "Random failures of nodes: means of the time up and down, {'mtbf': '1d', 'mttr': '1h'} or as a text.",
    "maintenance": "Windows in which nodes are down: a file, a table or rows with node, down_s and up_s.",
    "compat": "Behaviours of an original, by system (fgd, gavel, gavel-2020-05, monitored, pwr, synergy) or switch.",
    "round_s": "Jobs: length of a round, above 0. Default: 360 s.",
    "realloc_s": "Jobs: least time between two allocations, 0 or more. Default: 1,920 s, or 0 for some policies.",
    "begin_s": "Jobs in an order: when the first round may begin. Default: 0 s.",
    "window": "Jobs that count, first:last by id, while others go on arriving.",
    "rates": "Jobs: steps a second of a job on a GPU model: an Oracle, a Sensitivity, a file, default or synergy.",
    "prices": "$ for an hour of a GPU by model: {'T4': 0.35}, fixed?T4=0.35, a Prices or a folder of recorded ones.",
    "carbon": "Intensity of the grid, g of CO2 for a kWh: a number, 350?pue=1.2 or a file of times.",
    "global_queue": "Jobs: one queue for all GPU models instead of one each.",
    "profiling": "Jobs: measured part of the rates of sharing, 0 to 1; the others are estimated.",
    "references": "Jobs: number of reference workloads for these estimates, 1 or more. Default: all.",
    "ideal": "Jobs: without rounds, each progresses by its share; placements and timeline have no rows.",
    "interference": "Adaptive jobs: part of the speed, 0 to below 1, that jobs on several nodes lose on a shared one.",
    "telemetry": "Samples of every GPU: seconds between two, a text such as 15?refresh_s=6:8, or a Telemetry.",
    "name": "Label of the run.",
    "out": "Folder that the tables are streamed to; it appears complete or not at all.",
    "log": "Jobs: file for the log in the format of Gavel's simulator.",
}
"""Fields of a scenario and what they are."""


def documented(text: str | None, names: Iterable[str], more: Mapping[str, str]) -> str:
    """A docstring with one entry for each of the parameters, in the order of ``names``."""
    texts = {**PARAMETERS, **more}
    entries = (
        textwrap.fill(f"{name}: {texts[name]}", 110, initial_indent="    ", subsequent_indent="        ",
                      break_long_words=False, break_on_hyphens=False)
        for name in names
    )  # fmt: skip
    return "\n".join([inspect.cleandoc(text or ""), "", "Args:", *entries, ""])
