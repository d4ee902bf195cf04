"""How much work a run of pods will be, before it begins: samples, readings, failures, and tries of pods that restart.

Only pods in memory are known by then. Estimates are at the low end: a run ends no earlier than its last pod could, and
a gang stands on as few nodes as can hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.engine.online.headway import NoHeadway, WorkAhead
from fastsim.foundation.limits.knobs import INFLATION
from fastsim.foundation.limits.work_budget import Work, refuse_excess
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.options import OnlineOptions
    from fastsim.simulation.run_warnings import Message
    from fastsim.workload import Workload

WARNED_TRIES = 1000.0
"""Expected tries of a pod or gang from which a run warns before it begins."""

Array = Any


@dataclass(frozen=True)
class Tries:
    """The pod with the most expected tries: its row, the nodes it stands on, and the tries."""

    row: int
    nodes: int
    tries: float


def refuse_large(cluster: Cluster, workload: Workload, options: OnlineOptions, in_memory: bool) -> list[Message]:
    """ScenarioError if the run will exceed a budget of work; else warnings about pods that hardly ever end.

    ``in_memory``: rows of the timeline are not written to a folder as they come.
    """
    if workload.rows is not None and options.inflation is not None:
        INFLATION.refuse(workload.rows, options.inflation.ratio)
    table = _held(workload)
    if table is None:
        return []
    ahead = WorkAhead(cluster, options, in_memory)
    ahead.add(_numbers(table, s.SUBMIT_S, 0.0), _numbers(table, s.DURATION_S, 0.0))
    mtbf_s = options.rules.outages.mtbf_s
    return [] if mtbf_s is None else _hardly_ending(cluster, table, options, mtbf_s)


def _hardly_ending(cluster: Cluster, table: pa.Table, options: OnlineOptions, mtbf_s: float) -> list[Message]:
    """The warning about the pod or gang that is expected to start most often; ScenarioError beyond the budget."""
    rules = options.rules
    if rules.on_node_loss != "requeue" or options.until_s is not None:
        return []
    worst = most_tries(cluster, table, mtbf_s, rules.restart_s, rules.checkpoint_every_s)
    nodes = "a node" if worst.nodes == 1 else f"{worst.nodes} nodes"
    where = f"failures: row {worst.row} on {nodes}, one of which fails every {mtbf_s / worst.nodes:g} s"
    refuse_excess(where, worst.tries * worst.nodes, Work.STAYS, "until_s ends a run with what it did")
    if worst.tries < WARNED_TRIES:
        return []
    return [(NoHeadway, f"{where}: about {worst.tries:,.0f} tries are expected before it ends")]


def most_tries(
    cluster: Cluster, table: pa.Table, mtbf_s: float, restart_s: float, checkpoint_every_s: float | None
) -> Tries:
    """The row whose pod, with its gang, starts most often if nodes fail at exponential times.

    A try is lost unless all nodes of the gang last for the work that must be done again, and for the restart.
    """
    work = _numbers(table, s.DURATION_S, 0.0)
    again = work if checkpoint_every_s is None else np.minimum(work, checkpoint_every_s)
    nodes = _least_nodes(cluster, table)
    with np.errstate(over="ignore", invalid="ignore"):
        first = -np.expm1(-nodes * work / mtbf_s)
        tries = 1.0 + np.where(first > 0, first * np.exp(nodes * (again + restart_s) / mtbf_s), 0.0)
    if not len(tries):
        return Tries(0, 1, 1.0)
    row = int(np.nan_to_num(tries, posinf=np.inf).argmax())
    return Tries(row + 1, int(nodes[row]), float(tries[row]))


def _least_nodes(cluster: Cluster, table: pa.Table) -> Array:
    """Fewest nodes that can hold the gang of each row."""
    gang = np.maximum(_numbers(table, s.GANG_SIZE, 1.0), 1.0)
    gpu = _numbers(table, s.NUM_GPU, 0.0) * _numbers(table, s.GPU_MILLI, 0.0)
    most_gpu = 1000 * pc.max(cluster.nodes["num_gpu"]).as_py()
    most_cpu = pc.max(cluster.nodes["cpu_milli"]).as_py()
    nodes = np.ones(len(table))
    for need, most in ((gpu, most_gpu), (_numbers(table, s.CPU_MILLI, 0.0), most_cpu)):
        if most:
            nodes = np.maximum(nodes, np.ceil(gang * need / most))
    return np.minimum(nodes, gang)


def _numbers(table: pa.Table, name: str, missing: float) -> Array:
    """A column as numbers; null or absent is ``missing``."""
    if name not in table.column_names:
        return np.full(len(table), missing)
    return pc.fill_null(table[name].cast(pa.float64()), missing).to_numpy()


def _held(workload: Workload) -> pa.Table | None:
    """The rows of a workload in memory, if their columns are numbers; what else is wrong, the run itself refuses."""
    from fastsim.workload.pod_rows import Held

    if not isinstance(workload.source, Held):
        return None
    table = workload.source.table
    names = (s.SUBMIT_S, s.DURATION_S, s.GANG_SIZE, s.NUM_GPU, s.GPU_MILLI, s.CPU_MILLI)
    kinds = [table.schema.field(name).type for name in names if name in table.column_names]
    good = all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds)
    return table if good else None
