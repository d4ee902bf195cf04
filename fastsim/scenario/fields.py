"""The fields of a scenario, one row each: what they are in Python, and their options on the command line.

Help texts, options and the signature of ``simulate`` are made from this table; it imports nothing, so that the command
line starts fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

GROUPS: Mapping[str, str] = {
    "inputs": "Inputs", "placing": "Pods, placed one by one", "rounds": "Jobs, in rounds",
    "interruptions": "Interruptions", "costs": "Costs", "tables": "Tables",
}  # fmt: skip
"""Headings of the groups of fields."""


class ScenarioField(NamedTuple):
    """A field of a scenario: its name, group and meaning; and its option, which has no line if there is none.

    ``kind`` says what the option takes: a text, an input (a text, or ``-`` for standard input), a file, a span of time,
    a number, a whole number, a folder or the CSV file that is written; a flag takes nothing. ``choices`` are all values
    there are. ``flags`` are its spellings if they are not the name; a ``multiple`` one may be given again.
    """

    name: str
    group: str
    text: str
    option: str = ""
    metavar: str | None = None
    kind: str = "text"
    choices: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    multiple: bool = False


FIELDS: tuple[ScenarioField, ...] = (
    ScenarioField(
        "cluster",
        "inputs",
        text="A Cluster, or a text such as openb:50, uniform?nodes=8&gpu=H100 or a file; see Cluster.from_text.",
        option="openb, openb-all, openb:1000, uniform?…, mix?… or a Parquet/CSV file.",
        metavar="C",
        kind="input",
    ),
    ScenarioField(
        "workload",
        "inputs",
        text="A Workload, or a text such as synth:openb?pods=1000 or a file; see Workload.from_text.",
        option="synth:openb?pods=1000, a Parquet file or an openb CSV; add tune=1.3.",
        metavar="W",
        kind="input",
    ),
    ScenarioField(
        "policy",
        "inputs",
        text="A policy, or a text such as fgd, 0.9*fgd + 0.1*pwr or las; fastsim.policies.names() lists them.",
        option="A name or a sum: 'fgd', '0.9*fgd + 0.1*pwr'.  [default: fgd]",
        metavar="P",
    ),
    ScenarioField(
        "seed",
        "inputs",
        text="Seed of every random choice of the run, 0 to 2**64 - 1.",
        option="Seed of every random choice.  [default: 0]",
        kind="whole",
    ),
    ScenarioField(
        "typical",
        "inputs",
        text="Pods that fragmentation is measured with: a TypicalPods, a Workload or a text. Default: the workload.",
        option="Pods that fragmentation is measured with.  [default: the workload]",
        metavar="PODS",
    ),
    ScenarioField(
        "queue",
        "placing",
        text="Rule for pods that fit nowhere: drop (they are left out), fifo, priority, drf, easy, conservative, or by "
        "an order: srtf, srsf, las, tiresias, ftf, smallest, tetris, edf, or a sort key such as -column(value). With "
        "_skip (fifo_skip, priority_skip, srtf_skip ...) later pods may pass those that fit nowhere.",
        option="Pods that fit nowhere: drop, fifo(-skip), priority, drf, easy, conservative, srtf, edf …",
        metavar="Q",
    ),
    ScenarioField(
        "gpu_pick",
        "placing",
        text="Rule for the GPUs of a node: best, worst, random, fgd, pwr or dot_product. Default: the policy's.",
        option="Rule for the GPUs of a node.  [default: the policy's]",
        choices=("best", "worst", "random", "fgd", "pwr", "dot_product"),
    ),
    ScenarioField(
        "sample_s",
        "tables",
        text="Least time between rows of the timeline, above 0: seconds or a text such as 5min. Default: 0 s.",
        option="A timeline row every S seconds, not for every event.",
        metavar="S",
        kind="span",
    ),
    ScenarioField(
        "until_s",
        "inputs",
        text="Simulated time at which the run ends, 0 or more: seconds or a text such as 1h. Default: the last end.",
        option="Stop after S seconds of simulated time.",
        metavar="S",
        kind="span",
        flags=("--until",),
    ),
    ScenarioField(
        "record",
        "tables",
        text="Tables of the result: all, placements, timeline, summary or none; a summary is always there.",
        option="Tables to keep.  [default: all with --out, else summary]",
        choices=("none", "summary", "timeline", "placements", "all"),
    ),
    ScenarioField(
        "deschedule",
        "placing",
        text="Steps of descheduling after the run, texts such as frag_one_pod:0.05 or Deschedule objects.",
        option="After the run: frag_one_pod:0.05; at 60 s: …:0.05@60.",
        metavar="D",
        multiple=True,
    ),
    ScenarioField(
        "inflation",
        "placing",
        text="Clones added after the run, up to this many times the pods, 1 or more.",
        option="After the run: clones up to R times the pods.",
        metavar="R",
        kind="number",
    ),
    ScenarioField("retarget", "placing", text="Pods that fragmentation is measured with after the run; as typical."),
    ScenarioField(
        "preempt",
        "placing",
        text="Pods that one which fits nowhere may stop: none, or those of lower priority.",
        option="Victims of a pod that fits nowhere.",
        choices=("none", "priority"),
    ),
    ScenarioField(
        "on_node_loss",
        "placing",
        text="Pods of a node that fails: lost, or requeue.",
        option="Pods of a lost node.",
        choices=("lost", "requeue"),
    ),
    ScenarioField(
        "checkpoint_every_s",
        "interruptions",
        text="Time between checkpoints, to which a stopped pod goes back; 0 loses nothing. Default: none.",
        option="Work a stopped pod keeps.  [default: none; 0: all]",
        metavar="S",
        kind="span",
    ),
    ScenarioField(
        "restart_s",
        "interruptions",
        text="Time that a restart of a stopped pod or job adds, 0 or more.",
        option="Seconds that a restart of a stopped pod or job adds.",
        metavar="S",
        kind="span",
    ),
    ScenarioField(
        "quotas",
        "placing",
        text="Most that a tenant may hold: {'anna': {'gpu_milli': 8000}}, or anna:gpu_milli=8000 as a text.",
        option="Most a tenant may use: 'anna:gpu_milli=8000;*:gpu_milli=4000'.",
        metavar="Q",
    ),
    ScenarioField(
        "weights",
        "placing",
        text="Weights of tenants for queue=drf: {'anna': 2}, or anna=2 as a text. Default: 1 each.",
        option="Weights of tenants for --queue drf: 'anna=2,bert=1'.",
        metavar="W",
    ),
    ScenarioField(
        "failures",
        "interruptions",
        text="Random failures of nodes: means of the time up and down, {'mtbf': '1d', 'mttr': '1h'} or as a text.",
        option="Random failures of nodes, mean seconds: 'mtbf=86400,mttr=3600'.",
        metavar="F",
    ),
    ScenarioField(
        "maintenance",
        "interruptions",
        text="Windows in which nodes are down: a file, a table or rows with node, down_s and up_s.",
        option="CSV or Parquet file with node, down_s, up_s.",
        metavar="FILE",
        kind="file",
    ),
    ScenarioField(
        "compat",
        "inputs",
        text="Behaviours of an original, by system (fgd, gavel, gavel-2020-05, monitored, pwr, synergy) or switch.",
        option="Behaviours of an original, by system or by name: 'gavel'.",
        metavar="C",
    ),
    ScenarioField(
        "round_s",
        "rounds",
        text="Jobs: length of a round, above 0. Default: 360 s.",
        option="Seconds of a round.  [default: 360]",
        metavar="S",
        kind="span",
    ),
    ScenarioField(
        "realloc_s",
        "rounds",
        text="Jobs: least time between two allocations, 0 or more. Default: 1,920 s, or 0 for some policies.",
        option="Least time between allocations.  [default: 1920, fifo: 0]",
        metavar="S",
        kind="span",
    ),
    ScenarioField(
        "begin_s",
        "rounds",
        text="Jobs in an order: when the first round may begin. Default: 0 s.",
        option="Jobs in an order: when rounds may begin.  [default: 0]",
        metavar="S",
        kind="span",
    ),
    ScenarioField(
        "window",
        "rounds",
        text="Jobs that count, first:last by id, while others go on arriving.",
        option="Ids that count; others go on arriving.",
        metavar="A:B",
    ),
    ScenarioField(
        "rates",
        "rounds",
        text="Jobs: steps a second of a job on a GPU model: an Oracle, a Sensitivity, a file, default or synergy.",
        option="Steps/s, a file, 'default' or 'synergy'.  [default: the workload's]",
        metavar="R",
    ),
    ScenarioField(
        "prices",
        "costs",
        text="$ for an hour of a GPU by model: {'T4': 0.35}, fixed?T4=0.35, a Prices or a folder of recorded ones.",
        option="'fixed?v100=2.48&k80=0.45' or a folder of recorded prices.",
        metavar="P",
    ),
    ScenarioField(
        "carbon",
        "costs",
        text="Intensity of the grid, g of CO2 for a kWh: a number, 350?pue=1.2 or a file of times.",
        option="g of CO2 for a kWh: 350, '350?pue=1.2', 'FILE.csv?pue=1.2'.",
        metavar="C",
    ),
    ScenarioField(
        "global_queue",
        "rounds",
        text="Jobs: one queue for all GPU models instead of one each.",
        option="One queue for all GPU models.",
        kind="flag",
    ),
    ScenarioField(
        "profiling",
        "rounds",
        text="Jobs: measured part of the rates of sharing, 0 to 1; the others are estimated.",
        option="Measured part of the rates of sharing.  [default: 1]",
        metavar="P",
        kind="number",
    ),
    ScenarioField(
        "references",
        "rounds",
        text="Jobs: number of reference workloads for these estimates, 1 or more. Default: all.",
        option="Reference workloads for sharing.  [default: all]",
        metavar="N",
        kind="whole",
    ),
    ScenarioField(
        "ideal",
        "rounds",
        text="Jobs: without rounds, each progresses by its share; placements and timeline have no rows.",
        option="Without rounds, each progresses by its shares.",
        kind="flag",
    ),
    ScenarioField(
        "interference",
        "rounds",
        text="Adaptive jobs: part of the speed, 0 to below 1, that jobs on several nodes lose on a shared one.",
        option="Adaptive jobs: part of the speed that two jobs on several nodes lose on a common node.",
        metavar="P",
        kind="number",
    ),
    ScenarioField(
        "telemetry",
        "tables",
        text="Samples of every GPU: seconds between two, a text such as 15?refresh_s=6:8, or a Telemetry.",
        option="Sample every GPU each so many seconds: 15, '15?refresh_s=6:8'.",
        metavar="T",
    ),
    ScenarioField("name", "inputs", text="Label of the run."),
    ScenarioField(
        "out",
        "tables",
        text="Folder that the tables are streamed to; it appears complete or not at all.",
        option="Folder for the result.",
        metavar="DIR",
        kind="folder",
        flags=("-o", "--out"),
    ),
    ScenarioField(
        "log",
        "tables",
        text="Jobs: file for the log in the format of Gavel's simulator.",
        option="Jobs: log in Gavel's format.",
        metavar="FILE",
        kind="csv",
    ),
)
"""Every field, in the order of the class."""
