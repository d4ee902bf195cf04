"""Texts of runs in rounds: rates, prices, windows and servers.

=========  ======================================================================================================
rates      ``default`` (shipped, from a model), a Gavel throughput file (.json, .json.gz), canonical Parquet or a .csv
           file with the same columns (``steps_per_s``);
           ``synergy`` (shipped) or a .csv file with sensitivities (``speedup``), whose jobs run at their fair shares
           unless the policy allocates CPUs and memory; none: those that the workload brings, else
           ``default`` for jobs with workloads, else a step a second
prices     ``fixed?v100=2.48&k80=0.45`` in $/h of a GPU, or a folder of recorded prices, with ``?clouds=aws,gcp``
window     ``FIRST:LAST``, ids of the jobs that count, ``LAST`` not included
=========  ======================================================================================================
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastsim.errors import ScenarioError, kind_of, short
from fastsim.foundation.limits.packed_file import opened_text
from fastsim.foundation.option_texts import names_file, names_folder, parted
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.performance.oracle import Oracle
    from fastsim.performance.sensitivity import Sensitivity
    from fastsim.scenario.prices import Prices
    from fastsim.workload import Workload

SYNERGY = "synergy"
"""Sensitivities of Synergy's models, as measured with as many CPUs for each GPU as the servers have."""
MEASURED = (3.0, 4.0, 5.0, 6.0)
"""CPUs for each GPU of the measurements; other ratios take the first."""
MOST_ID = 2**63 - 1
"""Largest id of a job."""


def rates_from(what: Any, workload: Workload, gpu_models: Sequence[str]) -> Oracle:
    """The rates of a text or an object, at least on these GPU models."""
    from fastsim.performance.oracle import Oracle
    from fastsim.performance.sensitivity import Sensitivity

    if isinstance(what, Oracle):
        return what
    if isinstance(what, Sensitivity):
        return what.oracle(gpu_models, gang_sizes(workload))
    if what is None:
        named = s.WORKLOAD in workload.columns
        return Oracle.default() if named else pod_oracle(workload, tuple(gpu_models))
    check_rates(what)
    if what == "default":
        return Oracle.default()
    if str(what).endswith(".csv"):
        return Oracle.from_csv(what)
    return Oracle.from_parquet(what) if str(what).endswith(".parquet") else Oracle.from_json(what)


def pod_oracle(workload: Workload, gpu_models: tuple[str, ...]) -> Oracle:
    """Rates of a workload of pods: one step a second on every model, nothing shared."""
    import numpy as np
    import pyarrow.compute as pc

    from fastsim.performance.oracle import POD, Oracle

    sizes = sorted({int(n) for batch in workload.batches() for n in pc.unique(batch[s.NUM_GPU]).to_pylist()})
    kinds = tuple((POD, n) for n in sizes)
    shape = (len(kinds), len(gpu_models))
    return Oracle(kinds, gpu_models, np.ones(shape), np.zeros((len(kinds), *shape)), "pods")


def sensitivity_from(what: Any, cluster: Cluster) -> Sensitivity | None:
    """The sensitivities of a text or an object, on servers of this cluster; None if it has rates instead."""
    from fastsim.performance.sensitivity import Sensitivity

    if isinstance(what, Sensitivity):
        return what
    if what != SYNERGY and not (str(what).endswith(".csv") and _is_of_sensitivities(what)):
        return None
    nodes = [n for n in cluster.offered.select(["num_gpu", "cpu_milli"]).to_pylist() if n["num_gpu"]]
    ratios = {node["cpu_milli"] / 1000 / node["num_gpu"] for node in nodes}
    ratio = ratios.pop() if len(ratios) == 1 else None
    if what == SYNERGY:
        return Sensitivity.default(ratio) if ratio in MEASURED else Sensitivity.default()
    check_rates(what)
    return Sensitivity.from_file(what)


def _is_of_sensitivities(path: Any) -> bool:
    """Whether a CSV file has no column of rates; what is there is checked when it is read."""
    check_rates(path)
    with opened_text(path) as text:
        return "steps_per_s" not in next(csv.reader(text), ())


def gang_sizes(workload: Workload) -> list[int]:
    """Numbers of GPUs of the workload's jobs and of the published experiments' jobs; these alone if it has no end."""
    import pyarrow.compute as pc

    from fastsim.performance.sensitivity import SIZES

    if workload.endless() is not None:
        return list(SIZES)
    sizes = {int(n) for batch in workload.batches() for n in pc.unique(batch[s.NUM_GPU]).to_pylist()}
    return sorted(sizes - {0} | set(SIZES))


def check_rates(what: Any) -> None:
    """ScenarioError for a text that names no rates; files are read later."""
    if not isinstance(what, str | Path):
        _check_rates_object(what)
        return
    if what in ("default", SYNERGY):
        return
    if not str(what).endswith((".json", ".json.gz", ".parquet", ".csv")) or not names_file(what):
        expected = "'default', 'synergy', or an existing .json, .json.gz, .parquet or .csv file"
        raise ScenarioError("rates", repr(str(what)), expected)


def _check_rates_object(what: Any) -> None:
    """ScenarioError for an object that is no table of rates."""
    if what is None:
        return
    from fastsim.performance.applications.family import Applications
    from fastsim.performance.oracle import Oracle
    from fastsim.performance.sensitivity import Sensitivity

    if not isinstance(what, Oracle | Sensitivity | Applications):
        do = "write fs.Oracle(...) or fs.Oracle.from_csv(path)"
        raise ScenarioError("rates", kind_of(what), "a text, a path, an Oracle, a Sensitivity or Applications", do)


def prices_from(what: Any, gpu_models: Sequence[str], azure_last_zone: bool = False) -> Prices | None:
    """The prices of a text or an object, for these GPU models."""
    from fastsim.scenario.prices import CLOUDS, Prices

    if what is None:
        return None
    if isinstance(what, Prices):
        return what.restricted(gpu_models)
    if not isinstance(what, str | os.PathLike):
        expected = "$/h by GPU model as a dict, a text fixed?MODEL=PRICE&..., a folder, or an object such as"
        raise ScenarioError("prices", kind_of(what), f"{expected} fs.Prices.fixed({{'A100': 2.5}})")
    head, words = parted(str(what))
    pairs = [word.partition("=") for word in words]
    options = {name.strip(): value.strip() for name, _, value in pairs}
    if head == "fixed":
        return Prices.fixed({model: _price(model, text) for model, text in options.items()}).restricted(gpu_models)
    clouds = options.pop("clouds", ",".join(CLOUDS)).split(",")
    if options or not names_folder(head):
        raise ScenarioError("prices", repr(str(what)), "fixed?MODEL=PRICE&..., or a folder, with ?clouds=aws,gcp,azure")
    return Prices.from_folder(head, clouds, gpu_models, azure_last_zone)


def _price(model: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"prices: {model}", repr(text), "$/h") from None


def window_from(what: Any) -> tuple[int, int] | None:
    """Ids ``(first, last)`` of the jobs that count, from a text such as ``4000:5000`` or a pair."""
    if what is None:
        return None
    try:
        first, last = (int(part) for part in (what.split(":") if isinstance(what, str) else what))
    except (TypeError, ValueError):
        raise ScenarioError("window", repr(what), "FIRST:LAST, such as 4000:5000") from None
    if not 0 <= first < last <= MOST_ID:
        raise ScenarioError("window", short(what), f"0 <= FIRST < LAST <= {MOST_ID}")
    return first, last


def refuse_beyond(window: tuple[int, int] | None, workload: Workload) -> None:
    """ScenarioError if jobs of the window are not among those of the workload, whatever could be generated."""
    if window is None:
        return
    count = sum(batch.num_rows for batch in workload.batches()) if workload.rows is None else workload.rows
    if window[1] > count:
        expected = f"FIRST:LAST with LAST at most {count}, the jobs of {workload.name}"
        raise ScenarioError("window", f"{window[0]}:{window[1]}", expected)


def lasting(cluster: Cluster, policy: object) -> Cluster:
    """The cluster, whose nodes must be there from the beginning to the end; others are a ScenarioError."""
    for node in cluster.nodes.select(["name", "add_s", "remove_s"]).to_pylist():
        for name, what in (("add_s", "joins"), ("remove_s", "leaves")):
            if node[name] is not None:
                found = f"node {node['name']} that {what} at {node[name]:g} s"
                expected = f"nodes that stay: policy {policy} does not place pods one by one"
                raise ScenarioError("cluster", found, expected, "policies that place pods let nodes come and go")
    return cluster
