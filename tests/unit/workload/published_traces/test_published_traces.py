"""Importers of published traces: what rows become, files as they are found, and one clear error for each broken one."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_nodes import import_nodes
from fastsim.errors import FastsimError, InputError, ScenarioError
from fastsim.scenario.run_inputs import workload_from
from fastsim.workload import Workload
from fastsim.workload.pod_rows import PodRows
from fastsim.workload.published_traces.opendc import write_trace
from fastsim.workload.texts import PUBLISHED, import_trace

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,ua,va,16,64,2,COMPLETED,2020-05-01 10:00:10,2020-05-01 10:00:40,2020-05-01 10:01:40,60,30
6,ub,vb,0,4,1,FAILED,2020-05-01 10:00:00,2020-05-01 10:00:00,2020-05-01 10:00:05,5,0
8,ub,vb,1,4,1,CANCELLED,2020-05-01 10:00:20,None,2020-05-01 10:00:25,0,5
"""
KALOS = """job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,type,state,submit_time,start_time,end_time,duration
da,ua,2,16,64,100,Pretrain,FAILED,2023-05-01 10:00:10+00:00,2023-05-01 10:00:20+00:00,2023-05-01 10:00:28+00:00,18
db,ub,1,8,32,50,Eval,CANCELLED,2023-05-01 18:00:00+08:00,,,
"""
TASKS = """ja,worker,2.0,Terminated,100.0,160.0,600.0,29.296875,50.0,T4
jb,ps,1.0,Failed,120.0,121.0,100.0,1.0,,MISC
jc,worker,1.0,Running,130.0,,100.0,1.0,250.0,V100
jd,worker,1.0,Terminated,140.0,150.0,100.0,1.0,250.0,V100
"""
STARTS = "ja,x,ua,Terminated,90.0,160.0\njd,x,ub,Terminated,80.0,150.0\n"
SIMULATOR = """job_id,user,group,gpu_type,num_gpu,num_cpu,num_inst,submit_time,duration,group_dur
1,ua,ga,T4,0.5,6,2,10,100,90.5
0,ub,gb,V100,2,12,1,5,7,8
"""
SWF = """; Version: 2.2
; UnixStartTime: 1000000000
 1 5 10 100 4 -1 1024 8 3600 -1 1 3 2 1 0 -1 -1 -1

 2 6 -1 -1 4 -1 -1 8 3600 -1 5 3 2 1 0 -1 -1 -1
 3 7 1 50 -1 -1 -1 8 -1 2048 1 3 2 1 -1 -1 -1 -1
"""
SACCT = """JobID|JobIDRaw|User|QOS|Submit|Start|End|State|AllocTRES|ReqTRES|NNodes|Timelimit|JobName
9_1|9|ua|high|2024-01-01T00:00:10|2024-01-01T00:01:00|2024-01-01T01:01:00|COMPLETED|cpu=8,gres/gpu:a100=3,gres/gpu=4,mem=64G,node=2||2|1-00:00:00|train
9_1.batch|9.batch|||2024-01-01T00:00:10|2024-01-01T00:01:00|2024-01-01T01:01:00|COMPLETED|cpu=8||2||batch
8|8|ub|low|2024-01-01T00:00:00|Unknown|Unknown|CANCELLED by 5||cpu=2,mem=500M|1|UNLIMITED|x
7|7|ub|low|2024-01-01T00:00:05|2024-01-01T00:00:05|2024-01-01T00:00:35|FAILED||cpu=2,mem=1.5T,gres/gpu:a=1,gres/gpu:b=2|1|UNLIMITED|y
"""
V2025 = """instance_sn,role,app_name,cpu_request,gpu_request,rdma_request,memory_request,max_instance_per_node,\
creation_time,scheduled_time,deletion_time
i0,HN,app0,12,1,25,1.5,8,,,
i1,CN,app0,64,0,50,320,-1,,,500
i2,CN,app1,64,0,50,320,-1,100.5,101.5,400
"""
SPOT = """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
11,3,A10,8,0.25,1,20,100,Spot
10,4,H800,15,8,2,10,50,HP
"""
GENAI = """gmt_create,predict_type,predict_status,exec_time_seconds,groupId,checkpoint_model_version_id,num_lora
2024-11-15 16:57:50,TXT_2_IMG,SUCCEED,32.0,G0,M0,0
2024-11-15 16:58:50,IMG_2_IMG,PENDING,,G1,,0
"""
TIRESIAS = """job_id,num_gpu,submit_time,iterations,model_name,duration,interval
1,8,30,133,vgg11,147,23
0,1,0,6,vgg19,164,30
"""

TEXTS = {
    "helios": HELIOS, "acme": KALOS, "pai": SIMULATOR, "swf": SWF, "slurm": SACCT, "alibaba": SPOT,
    "tiresias": TIRESIAS,
}  # fmt: skip
WRONG = {
    "helios": ("16,64,2", "x,64,2", ":2: gpu_num: found 'x'"),
    "acme": ("2023-05-01 10:00:10+00:00", "soon", ":2: submit_time: found 'soon', expected a date and time"),
    "pai": ("T4,0.5", "T4,half", ":2: num_gpu: found 'half'"),
    "swf": (" 1 5 10 100", " 1 five 10 100", ":3: submit: found 'five', expected a number, -1 if it is unknown"),
    "slurm": ("10|2024-01-01T00:01:00|2024-01-01T01", "10|x|2024-01-01T01",
              ":2: Start: found 'x', expected a date and time"),
    "alibaba": ("A10,8", "A10,eight", ":2: cpu_request: found 'eight'"),
    "tiresias": ("1,8,30", "1,8,later", ":2: submit_time: found 'later'"),
}  # fmt: skip
MISSING = {
    "helios": ("gpu_num,", "gpus,", "no column 'gpu_num'"), "acme": ("end_time", "ended", "no column 'end_time'"),
    "pai": ("num_inst", "instances", "no column 'num_inst'"), "swf": (" 1 5 10", " 5 10", "found 17 fields"),
    "slurm": ("AllocTRES|ReqTRES", "a|b", "AllocTRES: found columns"),
    "alibaba": ("gpu_request", "gpus", "no column 'gpu_request'"),
    "tiresias": ("duration", "length", "no column 'duration'"),
}  # fmt: skip


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(workload: PodRows, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(workload.table()[name].to_pylist() for name in names), strict=True))


def test_every_importer_has_its_verb_its_text_and_a_line() -> None:
    assert set(TEXTS) | {"opendc"} == set(PUBLISHED)


def test_helios(tmp_path: Path) -> None:
    path = written(tmp_path, HELIOS)
    jobs = Workload.from_trace("helios", path)
    assert rows(jobs, "submit_s", "duration_s", "num_gpu", "cpu_milli", "tenant", "orig_start_s", "native_id") == [
        (0.0, 5.0, 0, 4000, "vb", 0.0, "6"), (10.0, 60.0, 16, 64_000, "va", 40.0, "7"),
    ]  # fmt: skip
    assert jobs.metadata["fastsim.left_out"] == "1" and jobs.metadata["fastsim.converter"] == "fastsim import helios"
    pods = workload_from(f"helios:{path}?gangs=true&where=gpu_num > 0").workload
    assert rows(pods, "pod_id", "num_gpu", "cpu_milli", "job_id", "gang_size") == [(n, 8, 32_000, 7, 2) for n in (0, 1)]


def test_acme(tmp_path: Path) -> None:
    path = written(tmp_path, KALOS)
    columns = ("duration_s", "num_gpu", "memory_mib", "native_type", "orig_end_s")
    assert rows(import_trace("acme", path), *columns) == [(8.0, 16, 204_800, "Pretrain", 18.0)]
    pods = import_trace("acme", path, gangs=True)
    assert rows(pods, "num_gpu", "memory_mib", "job_id", "gang_size") == [(8, 102_400, 0, 2)] * 2
    running = KALOS.replace("CANCELLED,2023-05-01 18:00:00+08:00,,", "RUNNING," + 2 * "2023-05-01 10:00:18+00:00,")
    found = rows(import_trace("acme", written(tmp_path, running)), "native_id", "duration_s", "censored")
    assert found == [("da", 8.0, False), ("db", 10.0, True)]
    seren = KALOS.replace("mem_per_pod_GB,", "").replace("64,100,", "64,").replace("32,50,", "32,")
    assert rows(import_trace("acme", written(tmp_path, seren)), "memory_mib", "duration_s") == [(0, 8.0)]


def test_pai_tasks_and_simulator_jobs(tmp_path: Path) -> None:
    path = written(tmp_path, TASKS, "pai_task_table.csv")
    columns = ("submit_s", "duration_s", "num_gpu", "gpu_milli", "cpu_milli", "memory_mib", "gang_size", "native_id")
    first = (0.0, 60.0, 1, 500, 6000, 30_000, 2, "ja")
    alone = import_trace("pai", path)
    assert rows(alone, *columns) == [first, first, (20.0, 1.0, 0, 0, 1000, 1024, 1, "jb"),
                                     (30.0, 30.0, 3, 1000, 1000, 1024, 1, "jc"),
                                     (40.0, 10.0, 3, 1000, 1000, 1024, 1, "jd")]  # fmt: skip
    assert rows(alone, "censored") == [(False,)] * 3 + [(True,), (False,)] and "gpu_models" not in alone.columns
    typed = rows(import_trace("pai", path, models=True), "gpu_models")
    assert typed == [(["T4"],), (["T4"],), (None,), (["V100"],), (["V100"],)]
    written(tmp_path, STARTS, "pai_job_table.csv")
    found = rows(import_trace("pai", path), "submit_s", "native_id", "orig_start_s")
    assert found == [(0.0, "jd", 60.0), (10.0, "ja", 20.0), (10.0, "ja", 20.0), (40.0, "jb", 40.0),
                     (50.0, "jc", 50.0)]  # fmt: skip
    jobs = import_trace("pai", written(tmp_path, SIMULATOR))
    further = ("submit_s", "num_gpu", "gpu_milli", "job_id", "gang_size", "group", "est_duration_s")
    assert rows(jobs, *further) == [(0.0, 2, 1000, 0, 1, "gb", 8.0), *[(5.0, 1, 500, 1, 2, "ga", 90.5)] * 2]


def test_nodes_of_pai_and_of_the_spot_trace(tmp_path: Path) -> None:
    path = written(tmp_path, "ma,CPU,96,512,0\nmb,T4,96,512,2\nmc,MISC,8,1.5,8\n")
    machines = Cluster.from_text(f"pai:{path}")
    assert machines.nodes["gpu_model"].to_pylist() == [None, "T4", "MISC"]
    assert machines.nodes["memory_mib"].to_pylist() == [524_288, 524_288, 1536]
    path = written(tmp_path, "gpu_model,gpu_capacity_num,cpu_num,node_name\nH800,8,192,5\nGPU-series-1,1,128,6\n")
    nodes = Cluster.from_text(f"alibaba:{path}")
    assert nodes.nodes["name"].to_pylist() == ["5", "6"] and nodes.total_gpus == 9
    with pytest.raises(InputError, match="gpu_type: found columns a, expected this required column"):
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "m.parquet")
        import_nodes("pai", tmp_path / "m.parquet")
    with pytest.raises(ScenarioError, match="nodes of helios: found no list of nodes, expected one of: pai, alibaba"):
        import_nodes("helios", path)


@pytest.mark.filterwarnings("ignore::fastsim.workload.texts.RowsLeftOut")
def test_swf(tmp_path: Path) -> None:
    path = written(tmp_path, SWF, "log.swf")
    jobs = import_trace("swf", path)
    columns = (
        "submit_s",
        "duration_s",
        "cpu_milli",
        "memory_mib",
        "est_duration_s",
        "orig_start_s",
        "qos",
        "native_id",
    )
    assert rows(jobs, *columns) == [
        (0.0, 100.0, 4000, 4, 3600.0, 10.0, "0", "1"), (2.0, 50.0, 8000, 16, None, 3.0, None, "3"),
    ]  # fmt: skip
    assert jobs.metadata["fastsim.origin_utc"] == "2001-09-09T01:46:45+00:00"
    assert rows(workload_from(f"swf:{path}?processors=gpu").workload, "num_gpu", "cpu_milli") == [(4, 0), (8, 0)]
    with pytest.raises(ScenarioError, match="processors: found 'tpu', expected one of: cpu, gpu"):
        import_trace("swf", path, processors="tpu")
    with pytest.raises(InputError, match="found no job, expected lines of 18 numbers"):
        import_trace("swf", written(tmp_path, "; only a comment\n"))
    with pytest.raises(InputError, match="no such file, expected a trace in the Standard Workload Format"):
        import_trace("swf", tmp_path / "away.swf")


def test_slurm(tmp_path: Path) -> None:
    path = written(tmp_path, SACCT)
    columns = ("submit_s", "duration_s", "num_gpu", "cpu_milli", "memory_mib", "qos", "est_duration_s", "native_id")
    late, early = (
        (5.0, 3600.0, 4, 8000, 65_536, "high", 86_400.0, "9"),
        (0.0, 30.0, 3, 2000, 1_572_864, "low", None, "7"),
    )
    assert rows(import_trace("slurm", path), *columns) == [early, late]
    trailing = SACCT.replace("\n", "|\n")  # sacct --parsable
    assert rows(import_trace("slurm", written(tmp_path, trailing)), *columns) == [early, late]
    pods = import_trace("slurm", path, gangs=True, where="NNodes > 1")
    assert rows(pods, "num_gpu", "cpu_milli", "memory_mib", "job_id", "gang_size") == [(2, 4000, 32_768, 9, 2)] * 2


RUNS = "2024-01-01T00:00:05|2024-01-01T00:00:10|Unknown|"
WAITS = "2024-01-01T00:01:40|Unknown|Unknown|PENDING|"
SOON = "2024-01-01T00:01:40"
LISTS = {
    "elapsed": ("|Elapsed", f"7|{RUNS}RUNNING||gres/gpu=1|00:01:01\n8|{WAITS}|gres/gpu=1|00:00:00\n", 61.0),
    "the last moment": ("", f"7|{RUNS}RUNNING||gres/gpu=1\n8|{WAITS}|gres/gpu=1\n", 90.0),
    "a state without end": ("", f"7|{RUNS}COMPLETING||gres/gpu=1\n8|{WAITS}|gres/gpu=1\n", 90.0),
    "a start to come": ("", f"7|{RUNS}RUNNING||gres/gpu=1\n8|{WAITS.replace('Unknown', SOON, 1)}|\n", 90.0),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_jobs_of_slurm_that_run_are_censored_and_those_that_wait_left_out(name: str, tmp_path: Path) -> None:
    further, text, duration_s = LISTS[name]
    path = written(tmp_path, f"JobID|Submit|Start|End|State|AllocTRES|ReqTRES{further}\n{text}")
    jobs = import_trace("slurm", path)
    assert rows(jobs, "native_id", "duration_s", "censored") == [("7", duration_s, True)]
    assert jobs.metadata["fastsim.left_out"] == "1"


def test_a_running_job_of_slurm_in_json_is_censored(tmp_path: Path) -> None:
    times = {"submission": 1_700_000_000, "start": 1_700_000_060, "end": 0}
    for elapsed, duration_s in (({"elapsed": 75}, 75.0), ({}, 0.0)):
        text = json.dumps(accounting(time=times | elapsed, state={"current": ["RUNNING"]}))
        found = import_trace("slurm", written(tmp_path, text, "jobs.json"))
        assert rows(found, "duration_s", "censored", "orig_status") == [(duration_s, True, "RUNNING")]


GPU_MODELS = {
    "gres/gpu=2": None, "gres/gpu:a100=2,gres/gpu=2": ["A100"], "gres/gpu:tesla_v100-sxm2-32gb=1": ["V100M32"],
    "gres/gpu:nvidia_a100_80gb_pcie=1": ["A100-80GB"], "gres/gpu:v100=1,gres/gpu:t4=0": ["V100", "V100M16", "V100M32"],
    "gres/gpu:a100=1,gres/gpu:T4=1": ["A100", "T4"], "gres/gpu:rtx_6000=1": ["rtx_6000"], "gres/gpu:a100=0": None,
}  # fmt: skip


def test_gpus_of_slurm_have_the_models_of_the_catalogue(tmp_path: Path) -> None:
    ran = "2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:00:05|COMPLETED"
    lines = "".join(f"{n}|{ran}|{text}\n" for n, text in enumerate(GPU_MODELS))
    path = written(tmp_path, f"JobID|Submit|Start|End|State|AllocTRES\n{lines}")
    for jobs in (import_trace("slurm", path), workload_from(f"slurm:{path}").workload):
        assert [models for (models,) in rows(jobs, "gpu_models")] == list(GPU_MODELS.values())
    assert not {"gpu_models", "native_models"} & {*import_trace("slurm", path, models=False).columns}


def accounting(**change: Any) -> dict[str, Any]:
    job = {
        "job_id": 5, "user": "ua", "qos": "high", "partition": "p", "allocation_nodes": 2, "priority": {"number": 4},
        "time": {"submission": 1_700_000_000, "start": 1_700_000_060, "end": {"set": True, "number": 1_700_000_160}},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}, {"type": "mem", "name": "", "count": 4096},
                               {"type": "gres", "name": "gpu", "count": 2}], "requested": []},
    }  # fmt: skip
    return {"jobs": [{**job, **change}]}


def test_slurm_in_json(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(accounting()), "jobs.json")
    columns = ("submit_s", "duration_s", "num_gpu", "cpu_milli", "memory_mib", "orig_status")
    assert rows(import_trace("slurm", path), *columns) == [(0.0, 100.0, 2, 8000, 4096, "COMPLETED")]
    for text, message in (
        (json.dumps(accounting(time={})), r"jobs\[0\]: found no 'submission', expected a job with"),
        (json.dumps({"jobs": []}), "jobs: found .*, expected a list of jobs"),
        (json.dumps([1]), "jobs: found None"),
        (json.dumps(accounting())[:-9], "expected a complete JSON text"),
    ):
        with pytest.raises(InputError, match=message):
            import_trace("slurm", written(tmp_path, text, "jobs.json"))


def queued(**change: Any) -> dict[str, Any]:
    job = {
        "job_id": 5, "user_name": "ua", "qos": "high", "partition": "p", "job_state": ["PENDING"],
        "submit_time": {"set": True, "infinite": False, "number": 1_700_000_000}, "start_time": 0, "end_time": 0,
        "time_limit": {"set": True, "infinite": False, "number": 90}, "node_count": {"set": True, "number": 2},
        "tres_alloc_str": "", "tres_req_str": "cpu=8,mem=4G,node=2,gres/gpu=2", "array_task_string": "",
    }  # fmt: skip
    return {**job, **change}


def test_the_queue_of_slurm(tmp_path: Path) -> None:
    ran = {"start_time": 1_700_000_060, "end_time": {"set": True, "number": 1_700_000_160}}
    jobs = [
        queued(job_id=6, job_state="RUNNING", start_time=1_700_000_060, tres_alloc_str="cpu=4,mem=1G,gres/gpu:a=4"),
        queued(job_id=7, job_state=["COMPLETED"], **ran), queued(job_id=8, job_state=["CANCELLED"]),
        queued(array_task_string="0-6:3,9%2", time_limit={"set": False, "infinite": True, "number": 0}),
    ]  # fmt: skip
    path = written(tmp_path, json.dumps({"jobs": jobs}), "queue.json")
    columns = ("native_id", "duration_s", "num_gpu", "cpu_milli", "memory_mib", "orig_start_s", "est_duration_s")
    array = [(f"5_{task}", None, 2, 8000, 4096, None, None) for task in (0, 3, 6, 9)]
    assert sorted(rows(import_trace("slurm", path), *columns)) == [
        *array, ("6", 5400.0, 4, 4000, 1024, 60.0, 5400.0), ("7", 100.0, 2, 8000, 4096, 60.0, 5400.0),
    ]  # fmt: skip
    assert not {"censored", "native_last_moment"} & {*import_trace("slurm", path).columns}
    pods = import_trace("slurm", path, gangs=True, where="State = 'PENDING'")
    assert rows(pods, "num_gpu", "cpu_milli", "gang_size") == [(1, 4000, 2)] * 8
    assert len(set(rows(pods, "job_id"))) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"submit_time": "soon"}, r"jobs\[1\]: found no"),
        ({"job_id": {}, "submit_time": {}}, "found no 'number', expected a job with job_id"),
        ({"job_state": []}, r"jobs\[1\]: found no"),
        ({"array_task_string": "1-3,..."}, "list of tasks in '1-3,...' .*SLURM_BITSTR_LEN=0"),
        ({"array_task_string": "1-99999999999"}, "list of tasks"),
        ({"tres_req_str": "cpu=2"}, None),
    ],
)
def test_a_broken_job_of_the_queue_is_named(change: dict[str, Any], message: str | None, tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"jobs": [queued(), queued(**change)]}), "queue.json")
    if message is None:
        assert rows(import_trace("slurm", path), "num_gpu") == [(2,), (0,)]
        return
    with pytest.raises(InputError, match=message):
        import_trace("slurm", path)


def test_alibaba(tmp_path: Path) -> None:
    path = written(tmp_path, V2025)
    found = import_trace("alibaba", path)
    columns = ("submit_s", "duration_s", "num_gpu", "cpu_milli", "memory_mib", "group", "max_per_node", "native_id")
    assert rows(found, *columns) == [
        (0.0, None, 1, 12_000, 1536, "app0", 8, "i0"), (0.0, 500.0, 0, 64_000, 327_680, "app0", None, "i1"),
        (100.5, 298.5, 0, 64_000, 327_680, "app1", None, "i2"),
    ]  # fmt: skip
    resources = import_trace("alibaba", path, rdma=True).table()["extra_resources"].to_pylist()
    assert resources == [[("rdma_percent", 25)], [("rdma_percent", 50)], [("rdma_percent", 50)]]
    spot = import_trace("alibaba", written(tmp_path, SPOT))
    further = ("submit_s", "num_gpu", "gpu_milli", "gpu_models", "preemptible", "gang_size", "tenant")
    assert rows(spot, *further) == [
        *[(0.0, 8, 1000, ["H800"], False, 2, "4")] * 2,
        (10.0, 1, 250, ["A10"], True, 1, "3"),
    ]
    requests = import_trace("alibaba", written(tmp_path, GENAI))
    assert rows(requests, "submit_s", "duration_s", "num_gpu", "group") == [(0.0, 32.0, 1, "M0")]
    with pytest.raises(InputError, match="found columns a, b, expected instance_sn or worker_num or gmt_create among"):
        import_trace("alibaba", written(tmp_path, "a,b\n1,2\n"))


def test_tiresias(tmp_path: Path) -> None:
    found = import_trace("tiresias", written(tmp_path, TIRESIAS))
    assert rows(found, "submit_s", "duration_s", "num_gpu", "native_id", "native_model_name") == [
        (0.0, 164.0, 1, "0", "vgg19"), (30.0, 147.0, 8, "1", "vgg11"),
    ]  # fmt: skip


CHRONUS = """job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,\
expect_time_list,expect_value_list,best_effort,job_type
0,ua,2,100,50,vgg16,60,5,150,10,0,strict
1,ub,1,110,50,vgg16,60,5,110,10,1,best
2,ub,1,120,50,vgg16,60,5,90-120-150,10-5-1,0,soft
3,ub,0,90,50,vgg16,60,5,90,10,0,strict
"""


def test_deadlines_of_chronus(tmp_path: Path) -> None:
    found = import_trace("tiresias", written(tmp_path, CHRONUS))
    assert rows(found, "submit_s", "deadline_s", "tenant", "native_id", "native_job_type") == [
        (0.0, 150.0, "ua", "0", "strict"), (10.0, None, "ub", "1", "best"), (20.0, 110.0, "ub", "2", "soft"),
    ]  # fmt: skip
    for old, new, message in (
        ("5,150,", "5,x,", r":2: expect_time_list: found 'x', expected a number"),
        ("best_effort", "best", "no column 'best_effort'"), ("user", "who", "no column 'user'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            import_trace("tiresias", written(tmp_path, CHRONUS.replace(old, new, 1)))


def tasks(**change: Any) -> pl.DataFrame:
    table = {"id": [1, 0], "submission_time": [61_000, 1000], "duration": [500, 2000], "cpu_count": [2, 1],
             "cpu_capacity": [3000.0, 1500.0], "mem_capacity": [2048, 1024]}  # fmt: skip
    return pl.DataFrame({**table, **change})


def test_opendc_both_ways(tmp_path: Path) -> None:
    tasks(gpu_count=[1, None], deadline=[70_000, -1]).write_parquet(tmp_path / "tasks.parquet")
    found = workload_from(f"opendc:{tmp_path}").workload
    columns = ("submit_s", "duration_s", "cpu_milli", "memory_mib", "num_gpu", "deadline_s", "native_id")
    assert rows(found, *columns) == [(0.0, 2.0, 1000, 1, 0, None, "0"), (60.0, 0.5, 2000, 2, 1, 69.0, "1")]
    seconds = import_trace("opendc", tmp_path / "tasks.parquet", time_unit="s", memory_unit="MB")
    assert rows(seconds, "submit_s", "memory_mib") == [(0.0, 1024), (60_000.0, 2048)]
    assert write_trace(found, tmp_path / "again") == 2
    again = import_trace("opendc", tmp_path / "again")
    same = ("submit_s", "duration_s", "cpu_milli", "memory_mib", "num_gpu")
    assert rows(again, *same) == rows(found, *same)
    schema = pl.read_parquet_schema(tmp_path / "again" / "tasks.parquet")
    assert schema["id"] == pl.Int32 and schema["submission_time"] == pl.Int64
    fragments = pl.read_parquet(tmp_path / "again" / "fragments.parquet")
    assert fragments["duration"].to_list() == [2000, 500] and fragments["cpu_usage"].to_list() == [2000.0, 4000.0]
    with pytest.raises(InputError, match="duration_s: found no duration"):
        write_trace(Workload.from_csv({"a": [1]}, {"submit_s": "a", "num_gpu": "a"}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_broken_files_of_opendc(tmp_path: Path) -> None:
    path = tmp_path / "tasks.parquet"
    for change, message in (
        (
            {"duration": [-1, 5]},
            r"tasks\.parquet:1: duration_s = duration\[ms\]: found -0\.001, expected .* not negative",
        ),
        ({"cpu_count": ["two", "1"]}, r"tasks\.parquet:1: cpu_count: found 'two', expected a number"),
    ):
        tasks(**change).write_parquet(path)
        with pytest.raises(InputError, match=message):
            import_trace("opendc", path)
    tasks().drop("mem_capacity").write_parquet(path)
    with pytest.raises(InputError, match="no column 'mem_capacity'"):
        import_trace("opendc", path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="complete Parquet file"):
        import_trace("opendc", path)
    with pytest.raises(ScenarioError, match="time_unit: found 'h', expected one of: ms, s"):
        import_trace("opendc", path, time_unit="h")


# ---------------------------------------------------------------------- files as they are found, and broken ones


@pytest.mark.filterwarnings("ignore::fastsim.workload.texts.RowsLeftOut")
def test_a_file_of_an_archive_in_a_text(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as packed:
        for name in ("Venus/t.csv", "Earth/t.csv"):
            packed.writestr(name, HELIOS)
    found = workload_from(f"helios:{tmp_path / 'data.zip'}/Venus/t.csv").workload
    alone = import_trace("helios", written(tmp_path, HELIOS))
    assert found.checksum() == alone.checksum()
    assert found.metadata["fastsim.source_sha256"] == alone.metadata["fastsim.source_sha256"]
    with pytest.raises(InputError, match=r"archive of 2 files .* one of: \S+/data\.zip/Venus/t\.csv"):
        import_trace("helios", tmp_path / "data.zip")


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("fault", ["wrong type", "missing column", "cut", "cut gz", "empty", "no file", "binary"])
def test_a_broken_file_is_one_clear_error(kind: str, fault: str, tmp_path: Path) -> None:
    text = TEXTS[kind]
    old, new, message = WRONG[kind] if fault == "wrong type" else MISSING[kind]
    assert old in text
    cut = text.rstrip("\n").rpartition("\n")[0] + "\n1"
    broken: dict[str, tuple[str | bytes, str]] = {
        "wrong type": (text.replace(old, new, 1), message), "missing column": (text.replace(old, new, 1), message),
        "cut": (cut, "found 1 fields, expected"), "cut gz": (gzip.compress(text.encode())[:-12], "gzip|complete"),
        "empty": ("", "found"), "binary": (b"\xff\xfe\x00\xff\n" * 3, "found"), "no file": ("", "no such file"),
    }  # fmt: skip
    content, expected = broken[fault]
    path = written(tmp_path, content, "t.csv.gz" if fault == "cut gz" else "t.csv")
    if fault == "no file":
        path.unlink()
    with pytest.raises(FastsimError, match=r".") as error:
        import_trace(kind, path)
    assert str(path) in str(error.value)
    assert any(part in str(error.value) for part in expected.split("|")), str(error.value)


def test_options_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, HELIOS)
    for options, message in (
        ({"gang": True}, "unknown option 'gang', expected options among gangs, where, origin; did you mean 'gangs'"),
        ({"gangs": "yes"}, "gangs: found 'yes', expected true or false"),
        ({"where": "gpu_num"}, "expected a condition"),
        ({"origin": "max"}, "origin: found 'max'"),
    ):
        with pytest.raises(FastsimError, match=message):
            import_trace("helios", path, **options)
    with pytest.raises(ScenarioError, match=r"trace: found 'helio', expected one of: helios, .*did you mean 'helios'"):
        Workload.from_trace("helio", path)


# ---------------------------------------------------------------------- the recorded files

RECORDED = [
    ("helios", "data/helios/sample/cluster_log.documented_rows.csv", {}, 3),
    ("acme", "data/acme/sample/trace_seren.documented_rows.csv", {}, 2),
    ("acme", "data/acme/sample/trace_kalos.documented_rows.csv", {"gangs": True}, 16),
    ("pai", "data/pai2020/sample/pai_task_table.csv", {}, 1),
    ("alibaba", "data/alibaba-v2025/native/disaggregated_DLRM_trace.even_apps.csv.gz", {}, 13_624),
    ("alibaba", "data/alibaba-v2026-spot/sample/job_info_df.documented_rows.csv", {}, 112),
    ("alibaba", "data/alibaba-v2026-genai/native/lora_request_trace.first_half.csv.gz", {}, 13_411),
    ("tiresias", "data/tiresias/sample/60_job.csv", {}, 60),
    ("opendc", "data/opendc/native/10K_tasks", {}, 10_000),
    ("opendc", "data/opendc/native/small_gpu", {"time_unit": "s"}, 25),
    ("opendc", "data/opendc/native/workflow_example", {}, 4),
]


@pytest.mark.parametrize(("kind", "file", "options", "count"), RECORDED, ids=[file for _, file, _, _ in RECORDED])
def test_recorded_files(
    kind: str, file: str, options: dict[str, Any], count: int, shared: Callable[[str], Path]
) -> None:
    found = import_trace(kind, shared(file), **options)
    assert found.rows == count and found.table()["submit_s"][0].as_py() == 0.0


def test_recorded_nodes(shared: Callable[[str], Path]) -> None:
    machines = Cluster(*import_nodes("pai", shared("data/pai2020/native/pai_machine_spec.csv.gz")))
    assert (len(machines), machines.total_gpus, machines.total_cpu_milli) == (1897, 6742, 156_576_000)
    nodes = Cluster(*import_nodes("alibaba", shared("data/alibaba-v2026-spot/native/node_info_df.csv.gz")))
    assert (len(nodes), nodes.total_gpus, nodes.total_cpu_milli) == (4278, 10_412, 632_636_000)


@pytest.mark.parametrize(
    "change", [{"user": {"": "-5"}}, {"qos": ["x"]}, {"partition": 5}, {"state": {"current": [None]}}]
)
def test_fields_of_slurm_that_are_no_texts_are_written_as_ones(change: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(accounting(**change)), "jobs.json")
    assert import_trace("slurm", path).rows in (0, 1)


@pytest.mark.parametrize("second", [1 << 63, -(1 << 62), 10**30, "soon"])
def test_a_time_of_slurm_beyond_the_calendar_names_its_job(second: Any, tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(accounting(time={"submission": second, "start": 1, "end": 2})), "jobs.json")
    with pytest.raises(InputError, match=r"jobs\[0\]: found no"):
        import_trace("slurm", path)


def test_what_libraries_raise_because_of_a_cell_names_the_column(tmp_path: Path) -> None:
    path = written(tmp_path, SACCT.replace("JobName", "\x00", 1))
    with pytest.raises(InputError, match=r"t.csv:1: .*character NUL"):
        import_trace("slurm", path)
    text = json.dumps(accounting(user="\ud800"))
    with pytest.raises(InputError, match=r"jobs.json: found half a character"):
        import_trace("slurm", written(tmp_path, text, "jobs.json"))
