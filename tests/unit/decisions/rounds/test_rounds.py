"""One round explained: by hand for each engine, and against the placements of random runs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.decisions.explain import explanation_of
from fastsim.decisions.explain_text import explanation_text
from fastsim.decisions.rounds.columns import COLUMNS, MEANINGS, SCHEMAS
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.simulation import simulate as simulation
from tests.engines import RUNS, small_run

ENGINES = tuple(SCHEMAS)
Rows = list[dict[str, Any]]


def jobs_of(**columns: Any) -> fs.Workload:
    """Jobs with these columns that run for their durations."""
    return fs.Workload.from_polars(pl.DataFrame(columns))


def two_gpus(workload: fs.Workload, policy: Any, gpus: int = 2, **options: Any) -> fs.Scenario:
    """Rounds of 300 s on one node."""
    return fs.Scenario(fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=gpus), workload, policy, round_s=300, **options)


def rows(scenario: fs.Scenario, t: float | str, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of the round at a time."""
    return fs.explain(scenario, t=t).select(columns).rows()


# ---------------------------------------------------------------------- by hand: shares


def three_jobs() -> fs.Scenario:
    """Three equal jobs of 1,500 s on two GPUs: each has a share of 2/3."""
    workload = jobs_of(submit_s=[0.0] * 3, num_gpu=[1] * 3, duration_s=[1500.0] * 3, native_id=["a", "b", "c"])
    return two_gpus(workload, "max_min_fairness(mode=base)")


def test_shares_of_the_first_round() -> None:
    """Every job has half a round, 150 of 450 s: the priority is 2/3 over 1/3."""
    shown = rows(three_jobs(), 0, "pod_id", "state", "place", "received_s", "free", "gpus", "why")
    assert shown == [
        (0, "runs", 1, 150.0, 2, 1, "runs on 1 GPU of V100M32"),
        (1, "runs", 2, 150.0, 1, 1, "runs on 1 GPU of V100M32"),
        (2, "waits", 3, 150.0, 0, 0,
         "its figures are equal and its place behind that of job 1, the last that ran on V100M32, and no GPU was left"),
    ]  # fmt: skip
    figures = fs.explain(three_jobs(), t=299.9).select("share", "received", "priority", "deficit_s")
    for row in figures.rows():
        assert row == pytest.approx((2 / 3, 1 / 3, 2.0, 0.0), abs=1e-6)


def test_shares_of_the_second_round() -> None:
    """The first two jobs have had 450 of 1,050 s, the third one 150: priorities (2/3) x 7/3 and (2/3) x 7."""
    table = fs.explain(three_jobs(), t="5min")
    assert table["round"].to_list() == [1] * 3 and table["t_s"].to_list() == [300.0] * 3
    assert table["received_s"].to_list() == [450.0, 450.0, 150.0]
    assert table["received"].to_list() == pytest.approx([3 / 7, 3 / 7, 1 / 7])
    assert table["priority"].to_list() == pytest.approx([14 / 9, 14 / 9, 14 / 3], abs=1e-5)
    assert table["place"].to_list() == [2, 3, 1] and table["free"].to_list() == [1, 0, 2]
    assert table["state"].to_list() == ["runs", "waits", "runs"] and table["native_id"].to_list() == ["a", "b", "c"]


def test_a_priority_below_that_of_the_last_that_ran() -> None:
    assert "its priority is below that of job 2, " in fs.explain(three_jobs(), jobs="a", t=600)["why"][0]


def test_a_share_that_waits_for_the_next_allocation() -> None:
    """Shares are computed every 3,600 s: the second job, which came at 300 s, has none, and no GPU is left for it."""
    workload = jobs_of(submit_s=[0.0, 250.0], num_gpu=[2, 1], duration_s=[9000.0] * 2)
    scenario = two_gpus(workload, "max_min_fairness(mode=base)", realloc_s=3600)
    [row] = rows(scenario, 300, "share", "priority", "free", "why")[1:]
    assert row == (0.0, 0.0, 0, "has no share yet, as it came after the last allocation, and no GPU was left")


def test_a_gang_that_does_not_fit_beside_the_others() -> None:
    """The gang of four GPUs comes last, when two are left."""
    workload = jobs_of(submit_s=[0.0] * 3, num_gpu=[1, 4, 1], duration_s=[1500.0] * 3)
    table = fs.explain(two_gpus(workload, "max_min_fairness(mode=base)", gpus=4), t=0)
    assert table["free"].to_list() == [4, 2, 3] and table["gpus"].to_list() == [1, 0, 1]
    assert table["why"][1].endswith(", the last that ran on V100M32, and 2 of the 4 GPUs that it asks for were left")


def test_models_of_a_job_without_a_rate_or_with_too_few_gpus() -> None:
    jobs = "synth:gavel?jobs=9&rate_per_hour=60&multi_gpu=true&oversized=shrink&seed=4"
    with pytest.warns(match="run on 2 GPUs"):
        table = fs.explain(fs.Scenario("gavel:2:1:1", jobs, "max_min_fairness"), t="20min")
    wide = table.filter(pl.col("asks") == 2, pl.col("gpu_model") != "v100")
    reasons = {re.sub("(k80|p100)", "MODEL", why) for why in wide["why"]}
    assert reasons == {"asks for 2 GPUs, and there is 1 of MODEL", "its rate on MODEL is 0"}


def test_pairs_stand_in_rows_of_their_own() -> None:
    jobs = "synth:gavel?jobs=8&rate_per_hour=60&seed=2"
    scenario = fs.Scenario("gavel:1:1:1", jobs, "max_min_fairness(mode=packed)")
    table = fs.explain(scenario, t="2h")
    pairs = table.filter(pl.col("mate_id").is_not_null())
    assert pairs.height and (pairs["share"] > 0).any()
    together = pairs.filter(pl.col("gpus") > 0)
    for row in together.iter_rows(named=True):
        assert row["why"].endswith(f"which it shares with job {row['mate_id']}")
        assert together.filter(pod_id=row["mate_id"], mate_id=row["pod_id"], place=row["place"]).height == 1


# ---------------------------------------------------------------------- by hand: orders


def served() -> fs.Scenario:
    """A job on both GPUs, another one on both behind it, and one on a single GPU."""
    workload = jobs_of(submit_s=[0.0, 0.0, 400.0], num_gpu=[2, 2, 1], duration_s=[900.0, 900.0, 300.0])
    return two_gpus(workload, "fcfs")


def test_an_order_by_arrival() -> None:
    shown = rows(served(), 899, "pod_id", "round", "place", "turn", "key", "free", "gpus", "why")
    assert shown == [
        (0, 2, 1, 1, [0.0], 2, 2, "runs on 2 GPUs of V100M32, those of the last round"),
        (1, 2, 2, 2, [0.0], 0, 0, "asks for 2 GPUs, and 0 were free at its turn"),
        (2, 2, 3, 3, [400.0], 0, 0, "asks for 1 GPU, and 0 were free at its turn"),
    ]
    assert fs.explain(served(), t=300)["pod_id"].to_list() == [0, 1]


def test_a_job_that_lets_none_pass() -> None:
    """The gang of two does not fit beside the first job, so the single GPU stays free."""
    workload = jobs_of(submit_s=[0.0, 1.0, 2.0], num_gpu=[1, 2, 1], duration_s=[900.0] * 3)
    for policy, gpus, blocked in (("fcfs(blocking=True)", 0, 1), ("fcfs", 1, None)):
        table = fs.explain(two_gpus(workload, policy), t=300)
        assert table["gpus"].to_list() == [1, 0, gpus] and table["free"].to_list() == [2, 1, 1]
        assert table["blocked_by"].to_list() == [None, None, blocked]
    why = fs.explain(two_gpus(workload, "fcfs(blocking=True)"), jobs=[2], t=300)["why"][0]
    assert why == "job 1 before it has no GPUs, and none behind that one may start"


def test_a_job_that_lacks_cpus_beside_its_gpu() -> None:
    """A node of two GPUs and 8 CPUs: two jobs need 5 each."""
    cluster = fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=2, cpu_milli=8000, memory_mib=1000)
    workload = jobs_of(
        submit_s=[0.0] * 3, num_gpu=[1] * 3, cpu_milli=[5000, 5000, 100], memory_mib=[100, 100, 950],
        duration_s=[900.0] * 3,
    )  # fmt: skip
    scenario = fs.Scenario(cluster, workload, "fcfs(mechanism=greedy)", round_s=300)
    shown = rows(scenario, 0, "cpu_milli", "memory_mib", "free", "cpu_milli_free", "memory_mib_free", "gpus", "why")
    assert shown[1] == (
        5000.0, 100.0, 1, 3000.0, 900.0, 0, "1 GPU is free, but the servers lack CPU beside it"
    )  # fmt: skip
    assert shown[2][2:6] == (1, 3000.0, 900.0, 0) and "lack memory" in shown[2][6]


def test_a_job_outside() -> None:
    """Two GPUs, admitted demand up to twice as many: the fifth job of one GPU waits outside until one is done."""
    workload = jobs_of(submit_s=[float(k) for k in range(5)], num_gpu=[1] * 5, duration_s=[900.0] * 5)
    table = fs.explain(two_gpus(workload, "fcfs(admit=2)"), t=300)
    assert table["gpus"].to_list() == [1, 1, 0, 0, 0] and table["place"].to_list() == [1, 2, 3, 4, None]
    assert table["why"][4] == "waits outside: admitted jobs ask for 4 GPUs, and more than 4 are too many"
    assert table["why"][2] == "asks for 1 GPU, and 0 were free at its turn"


def test_a_job_that_is_not_served_since_those_before_it_leave_too_few() -> None:
    """With ``opt`` or narrow rounds only jobs whose GPUs are there have a turn."""
    cluster = "uniform?nodes=2&gpu=V100M32&gpus=8&cpu_milli=24000&memory_mib=512000"
    scenario = fs.Scenario(cluster, workload="synth:synergy?jobs=40&rate_per_hour=60&seed=1",
                           rates="synergy", policy="srtf(mechanism=tune)")  # fmt: skip
    table = fs.explain(scenario, t="40min")
    never = table.filter(pl.col("turn").is_null())
    assert (never["state"] == "waits").all() and (never["free"] < never["asks"]).all()
    assert table.filter(pl.col("turn").is_not_null()).height + never.height == table.height


def test_terms_of_a_key() -> None:
    """Least service first: the job that ran a round of 300 s on two GPUs has 600 GPU seconds."""
    workload = jobs_of(submit_s=[0.0, 0.0, 0.0], num_gpu=[2, 1, 1], duration_s=[900.0] * 3)
    shown = rows(two_gpus(workload, "order(key='service,arrival')"), 300, "terms", "key", "place", "gpus")
    terms = ["-starving", "service", "arrival"]
    assert shown == [
        (terms, [0.0, 600.0, 0.0], 3, 0), (terms, [0.0, 0.0, 0.0], 1, 1), (terms, [0.0, 0.0, 0.0], 2, 1)
    ]  # fmt: skip


# ---------------------------------------------------------------------- by hand: adaptive


BATCHES = {"cifar10": 128, "deepspeech2": 20, "yolov3": 8, "bert": 12}
"""Applications of the Sia trace, and a batch size of each."""


MODES = ("adaptive", "adaptive", "scale-gpus", "rigid")


def adaptive_jobs(count: int, seed: int) -> fs.Workload:
    """Jobs on at most four GPUs that arrive within 20 minutes."""
    draw = random.Random(seed)
    names = [draw.choice([*BATCHES]) for _ in range(count)]
    submit_s = sorted(draw.uniform(0, 1200) for _ in names)
    return jobs_of(
        submit_s=submit_s, workload=names, num_gpu=[draw.randint(1, 4) for _ in names],
        batch_size=[BATCHES[name] for name in names], task_role=[draw.choice(MODES) for _ in names],
    )  # fmt: skip


def lone(policy: str = "sia", cluster: str = "sia:1:0:1", jobs: int = 1) -> fs.Scenario:
    """A few adaptive jobs."""
    return fs.Scenario(cluster, adaptive_jobs(jobs, 1), policy, until_s=6000.0)


def run_of(scenario: fs.Scenario) -> fs.Result:
    """The result of a scenario."""
    return simulation.run(scenario)


def first_round_s(scenario: fs.Scenario) -> float:
    """A time in the first round in which there is a job."""
    return float(run_of(scenario).jobs["start_s"].min()) + 1  # type: ignore[arg-type]


def test_a_job_that_has_not_run_is_worth_its_gpus_alone() -> None:
    """Nothing is known of its goodput, so that one GPU of every model has goodput 1."""
    scenario = lone()
    table = fs.explain(scenario, t=first_round_s(scenario))
    assert table["goodput"].to_list() == [1.0] * table.height and table["asks"].to_list() == [1] * table.height
    assert table["gpus"].sum() == 1 and (table["state"] == "runs").all()
    assert set(table["why"]) <= {
        "runs on 1 GPU of aws, of all configurations worth most to it", "is worth as much as the chosen one",
        "runs on 1 GPU of rtx, of all configurations worth most to it",
    }  # fmt: skip


def test_values_are_those_of_the_program() -> None:
    """The value of a choice is lambda less (goodput x kept) ** p, rounded; what a job has is not charged a restart."""
    scenario = lone(jobs=3)
    end = float(run_of(scenario).jobs["start_s"].max()) + 600  # type: ignore[arg-type]
    table = fs.explain(scenario, t=end)
    policy = fs.policies.Sia()
    kept = table.filter(pl.col("gpus") > 0, pl.col("state") == "runs")
    assert kept.height
    for row in table.filter(pl.col("goodput").is_not_null()).iter_rows(named=True):
        whole = min(round(row["goodput"] ** policy.power, 2), 3000.0)
        assert row["value"] <= policy.unserved - whole + 2e-5 if policy.power < 0 else True


@pytest.mark.parametrize(
    "policy",
    ["sia", "pollux", "sia(aware=False)", "sia(rigid=True)", "served(order=las)", "optimus", "rotation", "planned"],
)
def test_other_policies_have_rows(policy: str) -> None:
    scenario = lone(policy, jobs=4).with_(round_s=300.0)
    result = run_of(scenario)
    table = fs.explain(scenario, t=float(result.jobs["start_s"].max()))  # type: ignore[arg-type]
    assert_agrees("adaptive", result, table)


# ---------------------------------------------------------------------- against placements


def gavel(seed: int, draw: random.Random, pods: bool) -> dict[str, Any]:
    """A run of a few jobs of Gavel's trace."""
    cluster = draw.choice(["gavel:2:2:2", "gavel:1:2:3", "gavel:8:0:0"])
    multi = "&multi_gpu=true" if not pods and draw.random() < 0.5 and cluster == "gavel:8:0:0" else ""
    return {"cluster": cluster, "workload": f"synth:gavel?jobs=12&rate_per_hour=20{multi}&seed={seed}"}


def share_run(seed: int, draw: random.Random) -> dict[str, Any]:
    policy = draw.choice([
        "max_min_fairness(mode=base)", "max_min_fairness", "max_min_fairness(mode=packed)", "fifo", "gandiva",
        "isolated", "finish_time_fairness", "max_sum_throughput",
    ])  # fmt: skip
    run = {**gavel(seed, draw, False), "policy": policy, "round_s": 600.0}
    run |= {"compat": "new_job_reserves_gpus"} if draw.random() < 0.3 and "packed" not in policy else {}
    return run | ({"global_queue": True} if draw.random() < 0.3 else {})


def order_run(seed: int, draw: random.Random) -> dict[str, Any]:
    options = draw.sample(["sticky=True", "blocking=True", "admit=1.5", "place=True"], draw.randint(0, 2))
    name = draw.choice(["fcfs", "srtf", "las", "tiresias", "ftf", "round_robin"])
    policy = f"{name}({', '.join(options)})" if options else name
    return {**gavel(seed, draw, True), "policy": policy, "round_s": 600.0}


def cpu_run(seed: int, draw: random.Random) -> dict[str, Any]:
    """Ordered rounds in which CPUs and memory are short."""
    mechanism = draw.choice(["greedy", "tune", "fair", "opt"])
    name = draw.choice(["srtf", "las", "fcfs"])
    sticky = ", sticky=True" if draw.random() < 0.4 else ""
    return {
        "cluster": "uniform?nodes=3&gpu=V100M32&gpus=8&cpu_milli=24000&memory_mib=512000", "rates": "synergy",
        "workload": f"synth:synergy?jobs=30&rate_per_hour=60&seed={seed}",
        "policy": f"{name}(mechanism={mechanism}{sticky})", "until_s": 20_000.0,
    }  # fmt: skip


def adaptive_run(seed: int, draw: random.Random) -> dict[str, Any]:
    policy = draw.choice(["sia", "pollux", "served(order=las)"])
    cluster = draw.choice(["sia:1:0:1", "sia:1:1:1"])
    workload = adaptive_jobs(6, seed)
    return {"cluster": cluster, "workload": workload, "policy": policy, "round_s": 300.0, "until_s": 12_000.0}


def assert_agrees(engine: str, result: fs.Result, table: pl.DataFrame) -> None:
    """The rows of a round agree with the placements at its beginning."""
    t_s = table["t_s"][0]
    stays = result.placements.filter(pl.col("node_id").is_not_null())
    now = stays.filter(pl.col("start_s") <= t_s, pl.col("end_s").is_null() | (pl.col("end_s") > t_s))
    held = dict(now.group_by("pod_id").agg(pl.col("gpu_ids").list.len().sum()).rows())
    present = {
        row["pod_id"] for row in result.jobs.iter_rows(named=True)
        if row["submit_s"] <= t_s and (row["end_s"] is None or row["end_s"] > t_s)
    }  # fmt: skip
    assert {*table["pod_id"]} == present
    for (job,), rows in table.group_by("pod_id"):
        assert rows["gpus"].sum() == held.get(job, 0), (job, rows)
        assert (rows["state"] == ("runs" if job in held else "waits")).all() and (rows["gpus"] > 0).sum() <= 1
    assert table["why"].null_count() == 0 and table.filter(pl.col("why").str.strip_chars() == "").is_empty()
    assert table.filter(pl.col("why").str.starts_with("runs on"))["gpus"].min() in (None, *range(1, 65))
    FREE[engine](table)


def free_by_line(table: pl.DataFrame) -> None:
    """GPUs of a model at a turn are those of the first turn, less those before."""
    lines = table.filter(pl.col("place").is_not_null()).unique(["gpu_model", "place"]).sort("place")
    for _, line in lines.group_by("gpu_model"):
        before = line["gpus"].cum_sum().shift(1, fill_value=0)
        kept = line.filter(pl.col("why").str.contains("kept for it")).height
        if not kept:
            assert (line["free"] + before).n_unique() == 1, line


def free_by_turn(table: pl.DataFrame) -> None:
    """What runs found its GPUs; on one model what is free falls by what others take."""
    line = table.filter(pl.col("turn").is_not_null()).sort("turn")
    assert line["turn"].to_list() == list(range(1, line.height + 1))
    ran = line.filter(state="runs")
    assert (ran["free"] >= ran["gpus"]).all()
    for _, same in ran.group_by("gpu_model", maintain_order=True):
        assert (same["free"] + same["gpus"].cum_sum().shift(1, fill_value=0)).n_unique() == 1, same
    outside = table.filter(pl.col("place").is_null())
    assert sorted(table["place"].drop_nulls()) == list(range(1, table.height - outside.height + 1))
    keys = [tuple(key) for key in table.drop_nulls("place").sort("place")["key"].to_list()]
    assert keys == sorted(keys)


def free_beside_others(table: pl.DataFrame) -> None:
    """A chosen configuration has room beside the others."""
    ran = table.filter(pl.col("gpus") > 0)
    assert (ran["free"] >= ran["gpus"]).all()
    total = ran.group_by("gpu_model").agg(pl.col("gpus").sum().alias("total"))
    room = ran.join(total, on="gpu_model").select(
        (pl.col("free") - pl.col("gpus") + pl.col("total")).alias("gpus"), "gpu_model"
    )
    assert room.unique().height == room["gpu_model"].n_unique()


FREE: dict[str, Callable[[pl.DataFrame], None]] = {
    "shares": free_by_line, "orders": free_by_turn, "adaptive": free_beside_others,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("maker", [share_run, order_run, cpu_run, adaptive_run])
def test_random_rounds_agree_with_placements(maker: Callable[..., dict[str, Any]], seed: int) -> None:
    draw = random.Random(f"{maker.__name__} {seed}")
    run = maker(seed, draw)
    result = fs.simulate(**run)
    engine = {share_run: "shares", adaptive_run: "adaptive"}.get(maker, "orders")
    begin, end = float(result.jobs["submit_s"].min()), float(result.summary["makespan_s"][0])  # type: ignore[arg-type]
    scenario, tried = fs.Scenario(**run), 0
    for part in (0.1, 0.3, 0.5, 0.7):
        t = begin + part * (end - begin)
        if t < result.placements["start_s"].min():  # type: ignore[operator]
            continue
        table = fs.explain(scenario, t=t)
        assert dict(table.schema) == SCHEMAS[engine]
        if not table.is_empty():
            assert (table["t_s"] <= t).all()
            assert_agrees(engine, result, table)
            tried += 1
    assert tried


# ---------------------------------------------------------------------- sources, names, texts, refusals


@pytest.mark.parametrize("engine", ENGINES)
def test_a_saved_run_has_the_same_rounds(engine: str, tmp_path: Path) -> None:
    result = small_run(engine)
    folder = result.save(tmp_path / "run")
    t = float(result.jobs["submit_s"].max()) + 600  # type: ignore[arg-type]
    table = fs.explain(folder, t=t)
    assert table.equals(fs.explain(fs.Scenario(**RUNS[engine]), t=t)) and table.equals(fs.explain(result, t=f"{t} s"))
    one = int(table["pod_id"][-1])
    assert fs.explain(folder, one, t=t).equals(table.filter(pod_id=one))
    assert fs.explain(folder, jobs=[str(one)], t=t).equals(table.filter(pod_id=one))
    text = explanation_text(explanation_of(folder, t=t), every=True)
    assert text.startswith(f"round {table['round'][0]:,} at {table['t_s'][0]:,g} s: ") and f"job {one}" in text


def test_jobs_that_are_drawn_without_end_are_numbers() -> None:
    scenario = fs.Scenario(
        "gavel:2:2:2", "synth:gavel?jobs=20&rate_per_hour=8&seed=1", "max_min_fairness", window="10:20"
    )
    table = fs.explain(scenario, t="5h")
    assert table["pod_id"].max() > 19  # type: ignore[operator]
    job = int(table["pod_id"][-1])
    assert fs.explain(scenario, [job], t="5h").equals(table.filter(pod_id=job))
    with pytest.raises(InputError, match="no such job in the workload"):
        fs.explain(scenario, "a", t="5h")


def test_inputs_that_have_changed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submit_s,num_gpu,duration_s\n0,1,900\n0,1,900\n")
    cluster = "uniform?nodes=1&gpu=V100M32&gpus=1"
    run = fs.simulate(cluster, str(tmp_path / "jobs.csv"), "fcfs").save(tmp_path / "run")
    assert fs.explain(run, t=0).height == 2
    (tmp_path / "jobs.csv").write_text("submit_s,num_gpu,duration_s\n0,1,900\n0,1,901\n")
    with pytest.raises(InputError, match="content with checksum"):
        fs.explain(run, t=0)


def test_a_policy_that_has_changed_is_an_error() -> None:
    jobs = jobs_of(submit_s=[0.0, 1.0], num_gpu=[1, 1], duration_s=[900.0, 300.0])
    result = fs.simulate(fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=1), jobs, "fcfs", round_s=300)
    assert fs.explain(result, t=400)["state"].to_list() == ["runs", "waits"]
    with pytest.raises(ResultError, match=r"job 0: found that it waits at 300 s when repeated, expected that it runs"):
        fs.explain(result, t=400, policy="srtf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t": -1}, "expected seconds of 0 or more"),
        ({"t": float("nan")}, "expected seconds of 0 or more"),
        ({"t": float("inf")}, "expected seconds of 0 or more"),
        ({"t": "soon"}, "found 'soon', expected seconds of 0 or more"),
        ({"t": True}, "found True"),
        ({"t": [1]}, r"found \[1\]"),
        ({"t": 50}, "expected 100 s, when the first round begins, or later"),
        ({"t": "10d"}, "found 864000 s, expected less than 700 s, the run's end"),
        ({"t": 700}, "expected less than 700 s, the run's end"),
        ({"t": 100, "jobs": [9]}, "no such"),
        ({"t": 100, "jobs": ["b"]}, "job 1: found it is not in the system in the round at 100 s"),
        ({"t": 100, "jobs": [0], "pods": [0]}, "one of both words"),
        ({"t": 100, "jobs": 1.5}, "ids or names of jobs"),
        ({"t": 100, "sample": 2}, "found t with sample=2"),
        ({"t": 100, "attempt": "all"}, "found t with attempt='all'"),
        ({"jobs": []}, "either pods or a sample"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    workload = jobs_of(submit_s=[100.0, 500.0], num_gpu=[1, 1], duration_s=[300.0, 300.0], native_id=["a", "b"])
    with pytest.raises((InputError, ScenarioError), match=message):
        fs.explain(two_gpus(workload, "fcfs", begin_s=100.0), **options)


@pytest.mark.parametrize("engine", ["pods", "monitored"])
def test_runs_of_other_engines_are_refused(engine: str) -> None:
    with pytest.raises(ScenarioError, match=f"found a run of engine {engine}, expected a run in rounds"):
        fs.explain(fs.Scenario(**RUNS[engine]), t=10)


def test_a_run_without_rounds_is_refused() -> None:
    with pytest.raises(ScenarioError, match="found jobs without rounds"):
        fs.explain(fs.Scenario("gavel:2:2:2", "synth:gavel?jobs=3&seed=1", "max_min_fairness", ideal=True), t=10)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_column_has_a_meaning(engine: str) -> None:
    assert {*COLUMNS[engine]} <= {*MEANINGS} and SCHEMAS[engine]["why"] == pl.String
    assert {name for names in COLUMNS.values() for name in names} == {*MEANINGS}
