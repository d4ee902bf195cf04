"""Traces of every format with changed words, cells and bytes, read by their importers."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_nodes import import_nodes
from fastsim.scenario.run_inputs import workload_from
from fastsim.workload import Workload
from fastsim.workload.pod_rows import PodRows
from fastsim.workload.texts import import_trace
from tests.fuzz import mutation, trial
from tests.fuzz.trial import Trial
from tests.unit.workload.published_traces import test_published_traces as seeds

OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-00000,14000,0,1,1000,V100M16|V100M32,LS,Running,50,12902960,60
pod-00001,8000,16384,0,0,,BE,Pending,40,134,
pod-00002,6000,12288,1,460,T4,LS,Succeeded,40,100,100
"""
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\nopenb-node-0001,96000,1,0,\n"
GAVEL = (
    "ResNet-18 (batch size 16)\tpython3 x\t--n\t0\t1200\t0.5\t1\nLM (batch size 5)\tpython3 y\t--s\t1\t900\t7\t2\n",
    "ResNet-50 (batch size 64)\tpython3 x\tf\t--n\t1\t4000\t1\t1\t-1.0\t0\nA3C\tp\tf\t-m\t0\t9\t4\t5\t1.2\t30.5\n",
    "ResNet-18 (batch size 16)\tp\tf\t--n\t0\t1200\t1\tstatic\t1\t-1\t500.0\t0\n",
)
SIA = """name,time,application,num_replicas,batch_size,category
cifar10-0,107.0,cifar10,6,2048,rigid
bert-1,110.5,bert,1,12,adaptive
"""
SYNERGY = "7,res18,20,30,1\n3, gnmt,.5,40,16\n\n9,res18,20.0,1,2\n"
SYNERGY_INI = "[CLUSTER]\nracks=1\nservers_per_rack=2\ngpus_per_server=8\ncpus_per_server=24\ndram_per_server=500\n"
PHILLY_CSV = """timestamp,duration,num_gpus,gpu_time,cluster
2017-08-07 10:00:00,3600,1,3600,v1
2017-08-07 11:00:00,60.5,8,484,v2
"""
_ATTEMPT = {
    "start_time": "2017-08-01 06:00:00",
    "end_time": "2017-08-01 07:30:00",
    "detail": [{"ip": "m0", "gpus": ["gpu0", "gpu1"]}],
}
PHILLY = [
    {
        "submitted_time": "2017-08-01 05:00:00",
        "attempts": [_ATTEMPT, {**_ATTEMPT, "end_time": "None"}],
        "status": "Pass",
        "vc": "v1",
        "jobid": "j",
        "user": "u",
    },
    {
        "submitted_time": "2017-08-01 03:00:00",
        "attempts": [_ATTEMPT],
        "status": "Killed",
        "vc": "v2",
        "jobid": "k",
        "user": "w",
    },
]
TABLE = """who,start,stop,gpus,cores,ram_gb,share,labels
a,2024-01-01T00:00:10,2024-01-01T01:00:00,2,8,64,1.0,x
b,2024-01-01T00:00:20,2024-01-01T00:10:00,1,4,1.5,0.25,y|z
"""
MAPPING = {
    "submit_s": "start[iso]", "duration_s": "stop[iso] - start[iso]", "num_gpu": "gpus", "cpu_milli": "cores * 1000",
    "memory_mib": "ram_gb * 1024", "gpu_milli": "share * 1000", "tenant": "who",
}  # fmt: skip


def used(pods: PodRows, cluster: Any = None) -> None:
    """Sound tables, and a sound run on a small cluster."""
    trial.require_sound(pods.table())
    if (pods.rows or 0) <= 5000:
        trial.require_sound_run(cluster or Cluster.uniform(nodes=2, gpu="T4", gpus=8), Workload.of(pods))


def text_file(suffix: str, draw: random.Random, seed: str | Sequence[str]) -> tuple[str, bytes]:
    """Name and bytes of a file with a changed text; packed in some cases."""
    return packed(f"t{suffix}", mutation.raw(mutation.text(seed, draw), draw), draw)


def packed(name: str, data: bytes, draw: random.Random) -> tuple[str, bytes]:
    """The file, gzipped and maybe broken in a few cases."""
    if draw.random() > 0.05:
        return name, data
    whole = bytearray(gzip.compress(data))
    if draw.random() < 0.7:
        whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    return f"{name}.gz", bytes(whole[: draw.choice((len(whole), len(whole), len(whole) // 2))])


def json_file(seed: Any, draw: random.Random) -> tuple[str, bytes]:
    """Name and bytes of a file with a changed tree."""
    return packed("t.json", mutation.raw(mutation.json_text(seed, draw), draw), draw)


def columns_file(tables: tuple[pl.DataFrame, ...], draw: random.Random) -> pl.DataFrame:
    """A table with changed columns."""
    frame = draw.choice(tables)
    for _ in range(draw.choice((1, 1, 2))):
        if not frame.width:
            break
        name = draw.choice(frame.columns)
        how = draw.random()
        if how < 0.15:
            frame = frame.drop(name)
        elif how < 0.25:
            frame = frame.rename({name: f"{name}x"})
        elif how < 0.5:
            kind = draw.choice(
                (pl.Int8, pl.Float64, pl.String, pl.UInt64, pl.Boolean, pl.Date, pl.Datetime("ns", "UTC"))
            )
            with contextlib.suppress(pl.exceptions.PolarsError):
                frame = frame.with_columns(pl.col(name).cast(kind, strict=False))
        else:
            values = frame[name].to_list()
            values[draw.randrange(len(values))] = draw.choice(
                (None, -1, 0, 1 << 31, (1 << 63) - 1, 1e300, float("nan"), float("inf"))
            )
            column = pl.Series(name, values, strict=False)
            # Values of several kinds become objects of Python, which no file holds.
            frame = frame if column.dtype == pl.Object else frame.with_columns(column)
    return frame


def prepare(case: Callable[[random.Random], Any], use: Callable[[Path], object]) -> Trial:
    """A trial that writes what ``case`` draws into a file and uses it."""
    base = trial.folder("trace")

    def used_file(drawn: Any) -> None:
        if isinstance(drawn, pl.DataFrame):
            drawn.write_parquet(base / "tasks.parquet")
            use(base)
            return
        name, data = drawn
        (base / name).write_bytes(data)
        use(base / name)

    return trial.of(case, used_file)


def options(draw_from: Path) -> dict[str, Any]:
    """Options by the number of bytes, so that each of them has its turn."""
    size = draw_from.stat().st_size if draw_from.is_file() else 0
    return {"gangs": True} if size % 5 == 0 else {}


def _trace(kind: str, path: Path) -> None:
    chosen = options(path) if kind in ("helios", "acme", "slurm") else {}
    used(import_trace(kind, path, **chosen))


def _nodes(kind: str, path: Path) -> None:
    trial.require_sound(Cluster(*import_nodes(kind, path)).nodes)


def _openb_nodes(path: Path) -> None:
    trial.require_sound(Cluster.from_openb(path).nodes)


def _synergy_nodes(path: Path) -> None:
    trial.require_sound(Cluster.from_synergy(path).nodes)


def _philly(path: Path) -> None:
    rules = "synergy" if path.stat().st_size % 3 == 0 else "all"
    used(Workload.from_philly(path, rules=rules, **({"exponential": True} if rules == "synergy" else {})))


def _text(kind: str, path: Path) -> None:
    used(workload_from(f"{kind}:{path}").workload)


def _mapped_case(draw: random.Random) -> tuple[str, bytes]:
    mapping = dict(MAPPING)
    data = TABLE
    if draw.random() < 0.5:
        data = mutation.text(TABLE, draw)
    else:
        name = draw.choice(list(mapping))
        mapping[name] = mutation.text(mapping[name], draw)
    body = json.dumps(mapping).encode() + b"\n" + data.encode("utf-8", "surrogatepass")
    return "t.csv", body


def _mapped(path: Path) -> None:
    head, _, data = path.read_bytes().partition(b"\n")
    path.write_bytes(data)
    used(Workload.from_csv(path, json.loads(head)))


_OPENDC = (seeds.tasks(), seeds.tasks(gpu_count=[1, None], deadline=[70_000, -1]))
_PAI = (seeds.SIMULATOR,)
_CASES: dict[str, tuple[Callable[[random.Random], Any], Callable[[Path], object]]] = {
    **{
        kind: (partial(text_file, ".swf" if kind == "swf" else ".csv", seed=seed), partial(_trace, kind))
        for kind, seed in {
            **seeds.TEXTS, "pai": (seeds.SIMULATOR,), "alibaba": (seeds.SPOT, seeds.V2025, seeds.GENAI),
        }.items()
    },
    "slurm JSON": (partial(json_file, seeds.accounting()), partial(_trace, "slurm")),
    "opendc": (partial(columns_file, _OPENDC), partial(_trace, "opendc")),
    "pai nodes": (partial(text_file, ".csv", seed="ma,CPU,96,512,0\nmb,T4,96,512,2\n"), partial(_nodes, "pai")),
    "alibaba nodes": (
        partial(text_file, ".csv", seed="gpu_model,gpu_capacity_num,cpu_num,node_name\nH800,8,192,5\nA10,1,128,6\n"),
        partial(_nodes, "alibaba"),
    ),
    "openb": (partial(text_file, ".csv", seed=OPENB), partial(_text, "openb")),
    "openb nodes": (partial(text_file, ".csv", seed=OPENB_NODES), _openb_nodes),
    "gavel": (partial(text_file, ".trace", seed=GAVEL), partial(_text, "gavel")),
    "sia": (partial(text_file, ".csv", seed=SIA), partial(_text, "sia")),
    "synergy": (partial(text_file, ".csv", seed=SYNERGY), partial(_text, "synergy")),
    "synergy nodes": (partial(text_file, ".ini", seed=SYNERGY_INI), _synergy_nodes),
    "philly": (partial(json_file, PHILLY), _philly),
    "philly CSV": (partial(text_file, ".csv", seed=PHILLY_CSV), _philly),
    "CSV mapping": (_mapped_case, _mapped),
}  # fmt: skip
TARGETS: dict[str, Callable[[], Trial]] = {
    f"importer {name}": partial(prepare, case, use) for name, (case, use) in _CASES.items()
}
"""Trials by name."""
