"""Templates of sweep files: the experiments of the published systems, and the flags of Gavel's scripts as keys.

====================  =========================================================================================
``fgd``               the FGD paper's matrix: traces, ten seeds, six policies at 1.3 times the cluster's GPUs
``pwr``               the PWR paper's: the same, with PWR and its mixes with FGD
``gavel-continuous``  figure 8 of the Gavel paper, or any flags of ``run_sweep_continuous.py``
``gavel-static``      its makespans, or any flags of ``run_sweep_static.py``
``synergy``           orders and mechanisms of Synergy on 16 servers
``sia``               Sia and a policy without adaption on the machines of its experiments
====================  =========================================================================================
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fastsim.errors import InputError, ScenarioError
from fastsim.policies.registry import ORIGINAL_NAMES

GAVEL_KINDS = ("gavel-continuous", "gavel-static")
KINDS = ("fgd", "pwr", *GAVEL_KINDS, "synergy", "sia")
SEEDS = list(range(42, 52))
"""The seeds of the published placement experiments."""
FGD_POLICIES = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd")
PWR_POLICIES = (
    *FGD_POLICIES, "pwr", "0.5*pwr + 0.5*fgd", "0.2*pwr + 0.8*fgd", "0.1*pwr + 0.9*fgd", "0.05*pwr + 0.95*fgd",
)  # fmt: skip
LIST, NODES = "openb_pod_list_", "openb_node_list_gpu_node"
PAPER = {
    "gavel-continuous": "-p fifo gandiva allox max_min_fairness max_min_fairness_perf max_min_fairness_packed "
    "--seeds 0 1 2 -c 36:36:36 -s 4000 -e 5000 -a 0 -b 6 -n 16",
    "gavel-static": "-p fifo gandiva min_total_duration min_total_duration_perf min_total_duration_packed "
    "--seeds 0 1 2 -c 36:36:36 -a 0 -b 500 -n 6 -m",
}
"""The commands of the paper's experiments."""
STABLE = {"gavel:36:36:36": {"fifo": 5.0, "max_min_fairness": 5.8, "max_min_fairness_perf": 5.8, "allox": 5.8}}
"""Jobs per hour above which the queue grows without end, so that a run ends late or never."""
CLUSTERS = ["25:0:0", "12:12:0", "16:8:0", "8:8:8"]
"""Default clusters of the scripts."""
UNUSED = {
    "--solver": "linear programs have solvers of fastsim's own",
    "--checkpoint-threshold": "checkpoints are options of a run: fastsim run --checkpoint, fastsim fork",
}
"""Flags of the scripts that mean nothing to a sweep, and why."""
UNNAMED = ("isolated_plus", "proportional")
"""Policies that the scripts have no name for."""


def sweep_text(kind: str, data: str | Path | None = None, flags: Sequence[str] = ()) -> str:
    """A sweep file of this kind; ``data`` is a folder of openb lists, ``flags`` are those of Gavel's scripts."""
    if kind not in KINDS:
        raise ScenarioError("sweep init", repr(kind), f"one of {', '.join(KINDS)}")
    if flags and kind not in GAVEL_KINDS:
        raise ScenarioError("sweep init", " ".join(flags), f"no flags: {kind} takes none")
    if data is not None and kind not in ("fgd", "pwr"):
        raise ScenarioError("sweep init", f"--data {data}", f"no such option: {kind} needs no files")
    if kind in ("fgd", "pwr"):
        return _placement(kind, None if data is None else Path(data))
    if kind in GAVEL_KINDS:
        return _gavel(kind, flags)
    return _SYNERGY if kind == "synergy" else _SIA


def toml_text(keys: Mapping[str, Any]) -> str:
    """Keys as TOML: plain values and lists first, then tables."""
    plain = [f"{_key(name)} = {_value(value)}\n" for name, value in keys.items() if not _is_table(value)]
    tables = [f"\n[{name}]\n{_table(value)}" for name, value in keys.items() if _is_table(value)]
    return "".join([*plain, *tables])


def _gavel(kind: str, flags: Sequence[str]) -> str:
    words = list(flags) or PAPER[kind].split()
    keys = flags_as_keys(kind, words)
    head = f"# {'run_sweep_continuous.py' if kind == GAVEL_KINDS[0] else 'run_sweep_static.py'} {' '.join(words)}\n"
    keys["record"] = "all" if {"-v", "--verbose"} & set(words) else "summary"  # thousands of runs
    if not flags and kind == "gavel-continuous":
        keys["cutoff_rates"] = STABLE
    return head + toml_text(keys)


def _placement(kind: str, data: Path | None) -> str:
    policies = FGD_POLICIES if kind == "fgd" else PWR_POLICIES
    tuned = "tune=1.3&tune_seed={seed}"
    if data is None:
        head = "# Pods drawn like those of the openb traces: with --data DIR the published lists take their place.\n"
        own: dict[str, Any] = {"trace": list(range(1, 17 if kind == "fgd" else 13))}
        texts = {"cluster": "openb?shuffle={seed}", "workload": f"synth:openb?pods=8152&seed={{trace}}&{tuned}"}
    else:
        names, suffix = _lists(data, kind)
        head = "# The published lists of pods and nodes.\n"
        own = {"data": data.absolute().as_posix(), "trace": names}
        texts = {"cluster": f"openb:{{data}}/{_nodes(data)}?shuffle={{seed}}",
                 "workload": f"openb:{{data}}/{LIST}{{trace}}{suffix}?{tuned}"}  # fmt: skip
    return head + toml_text({**texts, "policy": list(policies), "seed": SEEDS, "record": "timeline", "vars": own})


def _lists(data: Path, kind: str) -> tuple[list[str], str]:
    for suffix in (".csv", ".csv.gz", ".parquet"):
        names = sorted(path.name[len(LIST) : -len(suffix)] for path in data.glob(f"{LIST}*{suffix}"))
        names = [name for name in names if kind == "fgd" or not name.startswith("cpu")]
        if names:
            return names, suffix
    raise InputError(str(data), f"no {LIST}*.csv", "a folder with the pod lists of openb (CSV, CSV.gz or Parquet)")


def _nodes(data: Path) -> str:
    names = [path.name for path in sorted(data.glob(f"{NODES}.*")) if path.name.endswith((".csv", ".gz", ".parquet"))]
    if not names:
        raise InputError(str(data), f"no {NODES}.csv", "the node list of openb beside the pod lists")
    return names[0]


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and {"from", "to", "points"} != set(value)


def _table(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items())


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


_SYNERGY = """# Synergy: jobs 4,000 to 5,000 of an endless stream on 128 GPUs.
cluster = "synergy:16"
workload = "synth:synergy?log=10000"
policy = ["fifo+fair", "fifo+tune", "srtf+fair", "srtf+tune", "las+fair", "las+tune", "ftf+fair", "ftf+tune"]
rates = "synergy"
round_s = 300
rate_per_hour = [5, 7, 9]
split = "20:70:10"
window = "4000:5000"
compat = "synergy"
seed = [42, 43, 44]
"""
_SIA = """# Sia: 160 jobs of eight hours on machines with T4, A100 and RTX 2080 Ti.
cluster = "sia:6:2:3"
workload = "synth:sia?jobs=160"
style = ["philly", "helios", "newtrace"]
policy = ["sia", "rotation"]
round_s = 60
seed = [0, 1, 2]
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ScenarioError(self.prog, message, "the flags of Gavel's script")


def flags_as_keys(kind: str, flags: Sequence[str]) -> dict[str, Any]:
    """The keys of a sweep of this kind, one of ``GAVEL_KINDS``, for these flags of the script."""
    parser = _parser(kind)
    options = parser.parse_args(list(flags))
    if getattr(options, "utilization_threshold", None) is not None:
        raise ScenarioError(f"{parser.prog}: -u", options.utilization_threshold, "loads from -a to -b",
                            "fastsim sweep knee FILE searches the largest stable load")  # fmt: skip
    policies = options.policies or [name for name in ORIGINAL_NAMES if name not in UNNAMED]
    keys: dict[str, Any] = {"cluster": [_cluster(text, options.num_gpus_per_server) for text in options.cluster_spec]}
    keys |= {"policy_names": "gavel", "policy": policies, "compat": "gavel", "seed": options.seeds}
    keys["round_s"] = float(options.interval)
    steps = {"from": options.lower, "to": options.upper, "points": options.num_data_points}
    if kind == "gavel-continuous":
        keys |= {"rate_per_hour": steps, "window": f"{options.window_start}:{options.window_end}"}
        keys |= {"priorities": options.generate_multi_priority_jobs, "warm_start": options.simulate_steady_state}
        keys |= {"cutoff_rates": options.cutoff_throughputs_file, "profiling": options.profiling_percentages}
        keys["references"] = options.num_reference_models
    else:
        keys |= {"jobs": steps, "prices": _prices(options), "slos": options.assign_SLOs}
        keys["global_queue"] = options.enable_global_queue
    keys |= {"durations": options.fixed_job_duration, "rates": options.throughputs_file, "ideal": options.ideal}
    keys["multi_gpu"] = options.generate_multi_gpu_jobs
    return {name: value for name, value in keys.items() if value not in (None, False)}


def command_options(kind: str, flags: Sequence[str]) -> str:
    """Options of ``fastsim sweep`` for these flags: folder, workers and, if a run has a limit, its seconds."""
    options = _parser(kind).parse_args(list(flags) or PAPER[kind].split())
    limit = "" if options.timeout is None else f" --timeout {options.timeout:g}"
    return f"--out {options.log_dir} --workers {options.processes}{limit}"


def unused_flags(kind: str, flags: Sequence[str]) -> list[str]:
    """Flags that are given and change nothing here, each with the reason."""
    values = vars(_parser(kind).parse_args(list(flags) or PAPER[kind].split()))
    return [
        f"{flag}: {reason}" for flag, reason in UNUSED.items() if values.get(flag[2:].replace("-", "_")) is not None
    ]


def _cluster(text: str, per_server: str) -> str:
    return f"gavel:{text}" if per_server == "1:1:1" else f"gavel:{text}?per_server={per_server}"


def _prices(options: argparse.Namespace) -> str | None:
    folder = options.per_instance_type_prices_dir
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise InputError(folder, "no such folder", "a folder of recorded prices")
    clouds = options.available_clouds
    return f"{folder}?clouds={','.join(clouds)}" if clouds else str(folder)


def _parser(kind: str) -> _Parser:
    script = "run_sweep_continuous.py" if kind == GAVEL_KINDS[0] else "run_sweep_static.py"
    parser = _Parser(prog=script, add_help=False)
    add = parser.add_argument
    add("-l", "--log-dir", default="runs")
    add("-t", "--timeout", type=float)
    add("-j", "--processes", type=int, default=2)
    add("--solver")
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
    if kind == GAVEL_KINDS[0]:
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
    add("-u", "--utilization-threshold")
    add("--profiling_percentages", nargs="+", type=float)
    add("--num_reference_models", nargs="+", type=int)
    add("-a", "--throughput-lower-bound", dest="lower", type=float, required=True)
    add("-b", "--throughput-upper-bound", dest="upper", type=float, required=True)
