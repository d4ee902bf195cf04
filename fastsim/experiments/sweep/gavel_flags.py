"""The flags of Gavel's two sweep scripts, as they are written there, and the keys of a sweep file they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from fastsim.errors import InputError, ScenarioError
from fastsim.policies.registry import ORIGINAL_NAMES

CLUSTERS = ["25:0:0", "12:12:0", "16:8:0", "8:8:8"]
"""What the scripts run on unless they are told otherwise."""
UNNAMED = ("isolated_plus", "proportional")
"""Policies that the scripts do not know by name."""
KINDS = ("gavel-continuous", "gavel-static")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ScenarioError(self.prog, message, "the flags of Gavel's script")


def flags_as_keys(kind: str, flags: Sequence[str]) -> dict[str, Any]:
    """The keys of a sweep of this kind, one of ``KINDS``, for these flags of the script."""
    parser = _parser(kind)
    given = parser.parse_args(list(flags))
    policies = given.policies or [name for name in ORIGINAL_NAMES if name not in UNNAMED]
    keys: dict[str, Any] = {"cluster": [_cluster(text, given.num_gpus_per_server) for text in given.cluster_spec]}
    keys |= {"policy_names": "gavel", "policy": policies, "compat": "gavel", "seed": given.seeds}
    keys["round_s"] = float(given.interval)
    steps = {"from": given.lower, "to": given.upper, "points": given.num_data_points}
    if kind == "gavel-continuous":
        keys |= {"rate_per_hour": steps, "window": f"{given.window_start}:{given.window_end}"}
        keys |= {"priorities": given.generate_multi_priority_jobs, "warm_start": given.simulate_steady_state}
        keys |= {"cutoff_rates": given.cutoff_throughputs_file, "profiling": given.profiling_percentages}
        keys["references"] = given.num_reference_models
    else:
        keys |= {"jobs": steps, "prices": _prices(given), "slos": given.assign_SLOs}
        keys["global_queue"] = given.enable_global_queue
    keys |= {"durations": given.fixed_job_duration, "rates": given.throughputs_file, "ideal": given.ideal}
    keys["multi_gpu"] = given.generate_multi_gpu_jobs
    return {name: value for name, value in keys.items() if value not in (None, False)}


def _cluster(text: str, per_server: str) -> str:
    return f"gavel:{text}" if per_server == "1:1:1" else f"gavel:{text}?per_server={per_server}"


def _prices(given: argparse.Namespace) -> str | None:
    folder = given.per_instance_type_prices_dir
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise InputError(folder, "no such folder", "a folder of recorded prices")
    clouds = given.available_clouds
    return f"{folder}?clouds={','.join(clouds)}" if clouds else str(folder)


def _parser(kind: str) -> _Parser:
    script = "run_sweep_continuous.py" if kind == KINDS[0] else "run_sweep_static.py"
    parser = _Parser(prog=script, add_help=False)
    add = parser.add_argument
    for flag in ("-l", "--log-dir"), ("-t", "--timeout"), ("-j", "--processes"), ("--solver",):
        add(*flag, help="says where and how fast, not what")
    add("-v", "--verbose", action="store_true")
    add("-p", "--policies", nargs="+")
    add("-c", "--cluster-spec", nargs="+", default=CLUSTERS)
    add("--num_gpus_per_server", default="1:1:1")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    add("-i", "--interval", type=int, default=360)
    add("-f", "--fixed-job-duration", type=int)
    add("--throughputs-file")
    add("-m", "--generate-multi-gpu-jobs", action="store_true")
    add("--ideal", action="store_true")
    add("-n", "--num-data-points", type=int, default=20)
    if kind == KINDS[0]:
        _add_continuous(parser)
    else:
        add("--per_instance_type_prices_dir")
        add("--available_clouds", nargs="+", choices=("aws", "gcp", "azure"))
        add("--assign_SLOs", action="store_true")
        add("--enable_global_queue", action="store_true")
        add("-a", "--num-total-jobs-lower-bound", dest="lower", type=int, required=True)
        add("-b", "--num-total-jobs-upper-bound", dest="upper", type=int, required=True)
    return parser


def _add_continuous(parser: _Parser) -> None:
    add = parser.add_argument
    add("-s", "--window-start", type=int, default=0)
    add("-e", "--window-end", type=int, default=5000)
    add("--cutoff-throughputs-file")
    add("--generate-multi-priority-jobs", action="store_true")
    add("--simulate-steady-state", action="store_true")
    add("--checkpoint-threshold")
    add("--profiling_percentages", nargs="+", type=float)
    add("--num_reference_models", nargs="+", type=int)
    add("-a", "--throughput-lower-bound", dest="lower", type=float, required=True)
    add("-b", "--throughput-upper-bound", dest="upper", type=float, required=True)
