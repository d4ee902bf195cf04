"""Texts for clusters, workloads and typical pods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.cluster.texts import PRESETS
from fastsim.errors import FastsimError, InputError, ScenarioError
from fastsim.foundation.object_cache import OBJECTS
from fastsim.scenario import run_inputs
from fastsim.workload import Workload
from fastsim.workload.pod_rows import Held
from fastsim.workload.texts import HELD_ROWS, PUBLISHED, RowsLeftOut, in_memory
from fastsim.workload.typical_pods import TypicalPods
from tests.objects import node, pod, written

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,100,1,500,\np1,2000,200,2,1000,T4\np2,500,50,0,0,\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\nn0,96000,393216,8,G2\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small tables, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "nodes.csv").write_text(NODES)
    for name in ("jobs.trace", "jobs.txt"):
        (tmp_path / name).write_text(2 * "A3C\tmain.py\t--steps\t0\t900\t0.5\t1\n")
    (tmp_path / "jobs.csv").write_text("0,res18,0.5,900,1\n1,m5,1,900,2\n")
    (tmp_path / "philly.csv").write_text("timestamp,duration,num_gpus\n2017-10-09 07:00:00,5000,2\n")
    written(tmp_path / "kube.json", node(), pod(), pod("p2"))
    (tmp_path / "watts.csv").write_text("kind,model,memory_mib,idle_w,peak_w,cores_per_socket\ngpu,T4,15109,11,71,\n")
    Workload.from_openb("pods.csv").write("pods.parquet")
    Cluster.uniform(nodes=3, gpu="T4", gpus=2).to_parquet("cluster.parquet")
    TypicalPods.of(Workload.scan("pods.parquet")).to_parquet("typical.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "nodes", "gpus"),
    [
        ("openb", 1213, 6212),
        ("openb-all", 1523, 6212),
        ("openb:50?seed=3", 50, None),
        ("uniform?nodes=8&gpu=T4&gpus=4", 8, 32),
        ("uniform?nodes=2&gpu=A100&gpus=2&mig=3g.40gb+2*2g.20gb", 2, 4),
        ("mix?g2=2&t4=3&seed=1", 5, 22),
        ("cluster.parquet", 3, 6),
        ("openb:nodes.csv", 2, 10),
        ("gavel:4:4:8?per_server=2:4:1", 11, 16),
        ("synergy:3", 3, 24),
        ("kubernetes:kube.json", 1, 0),
    ],
)
def test_cluster_texts(files: Path, text: str, nodes: int, gpus: int | None) -> None:
    cluster = Cluster.from_text(text)
    assert len(cluster) == nodes and gpus in (None, cluster.total_gpus)


def test_objects_and_paths_are_taken_as_they_are(files: Path) -> None:
    cluster = Cluster.uniform(nodes=1)
    assert Cluster.from_text(cluster) is cluster
    assert len(Cluster.from_text(files / "cluster.parquet")) == 3
    pods = Workload.scan("pods.parquet")
    assert run_inputs.workload_from(pods).workload is pods
    typical = TypicalPods.of(pods)
    assert run_inputs.typical_from(typical, pods) is typical


def test_a_watts_table_changes_the_catalogue(files: Path) -> None:
    plain = Cluster.from_text("uniform?nodes=1&gpu=T4")
    changed = Cluster.from_text("uniform?nodes=1&gpu=T4&watts=watts.csv")
    assert plain.checksum() != changed.checksum()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("pods.parquet", 3),
        ("pods.csv", 3),
        ("openb:pods.csv?drop=cpu_only", 2),
        ("synth:openb?pods=20", 20),
        ("jobs.trace", 2),
        ("gavel:jobs.txt", 2),
        ("synth:gavel?jobs=20&gpu_mix=2:1&multi_gpu=true", 20),
        ("synth:synergy?jobs=20&split=50:0:50&log=9", 20),
        ("synergy:jobs.csv", 2),
        ("philly:philly.csv?rules=synergy&exponential=true", 1),
        ("kubernetes:kube.json", 2),
        ("kubernetes:kube.json?memory_unit=MiB", 2),
    ],
)
def test_workload_texts(files: Path, text: str, rows: int) -> None:
    assert run_inputs.workload_from(text).workload.table().num_rows == rows


def test_tuning_follows_the_cluster_and_keeps_the_untuned_pods(files: Path) -> None:
    cluster = Cluster.from_text("cluster.parquet")
    offered = run_inputs.workload_from("pods.csv?tune=1.5&tune_seed=4", cluster)
    table = pl.DataFrame(pl.from_arrow(offered.workload.table()))
    assert table.select((pl.col("num_gpu").cast(pl.Int64) * pl.col("gpu_milli")).sum()).item() >= 7000
    assert offered.untuned.table().num_rows == 3
    expected = Workload.from_openb("pods.csv").shuffled(4).tune(1.5, 6000, 4)
    assert offered.workload.checksum() == expected.checksum()


def test_nodes_are_drawn_after_pods_of_the_same_seed() -> None:
    nodes, pods = "openb:30?shuffle=4", "synth:openb?pods=50&tune=1.1&tune_seed={}"
    cluster, workload, untuned = run_inputs.inputs_from(nodes, pods.format(4))
    plain = Cluster.from_text("openb:30")
    tuned = untuned.shuffled(4).tune(1.1, plain.total_gpu_milli, 4)
    assert workload.checksum() == tuned.checksum() and cluster.nodes.equals(plain.shuffled(4, after=tuned).nodes)
    assert run_inputs.nodes_from(nodes, pods.format(4)).nodes.equals(cluster.nodes)
    alone = plain.shuffled(4).nodes
    assert not alone.equals(cluster.nodes) and Cluster.from_text(nodes).nodes.equals(alone)
    for other in (pods.format(5), "synth:openb?pods=50"):
        assert run_inputs.inputs_from(nodes, other).cluster.nodes.equals(alone)
    assert run_inputs.inputs_from(plain, pods.format(4)).cluster is plain
    of_texts = fs.simulate(nodes, pods.format(4), "best_fit", record="all", telemetry=5)
    of_objects = fs.simulate(cluster, workload, "best_fit", record="all", telemetry=5)
    for table in ("placements", "telemetry"):
        assert of_texts.frames[table].equals(of_objects.frames[table])


def test_typical_texts(files: Path) -> None:
    pods = Workload.scan("pods.parquet")
    assert run_inputs.typical_from(None, pods) == run_inputs.typical_from("same", pods) == TypicalPods.of(pods)
    assert run_inputs.typical_from("typical.parquet", pods) == TypicalPods.of(pods)
    assert run_inputs.typical_from("pods.csv", pods) == run_inputs.typical_from(pods, pods) == TypicalPods.of(pods)
    narrow = TypicalPods.of(pods, threshold=30, cpu_pods=False, gpu_weight=1)
    assert run_inputs.typical_from("?threshold=30&cpu_pods=false&gpu_weight=1", pods) == narrow
    assert run_inputs.typical_from("pods.csv?threshold=30&cpu_pods=false&gpu_weight=1", pods) == narrow
    one = run_inputs.typical_from("synth:openb?pods=1&seed=3&threshold=50", pods)
    assert len(one) == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("opneb", "did you mean 'openb'"),
        ("missing.parquet", "neither a file nor a known name"),
        (".", "a folder"),
        ("openb?nodes=3", "unknown option 'nodes'"),
        ("openb:0", "1 or more"),
        ("openb:9223372036854775808", "expected at most 1,000,000 nodes; FASTSIM_BUDGET"),
        ("sia:99999999999:1:1", "expected at most 1,000,000 nodes"),
        ("gavel:99999999999:1:1", "expected at most 1,000,000 nodes"),
        ("synergy:99999999999", "expected at most 1,000,000 nodes"),
        ("mix?g2=2000000", "found 2,000,000 nodes, expected at most 1,000,000 nodes; FASTSIM_BUDGET=2 allows it"),
        ("uniform?nodes=2&gpus=1000000", "gpus: found 1000000 without a model, expected gpu=MODEL with it"),
        ("uniform?gpu=T4", "nodes"),
        ("uniform?nodes=4&gpu=H9000", "H9000"),
        ("uniform?nodes=4&gpu=A100&mig=7*1g.5gb", "profile '1g.5gb' on A100"),
        ("uniform?nodes=few", "right kind"),
        ("mix?h9000=3", "unknown node type"),
        ("openb?watts=none.csv", "no such file"),
        ("openb?watts", "name=value"),
        ("mix?g2=1&g2=2", "name=value, each name once"),
        ("gavel:4:4", "three whole numbers"),
        ("gavel:4:4:4?servers=2", "unknown option 'servers'"),
        ("synergy:none.ini", "no such file"),
        ("synergy:4?gpus=2", "unknown option 'gpus'"),
        ("kubernetes:none.yaml", "no such file or folder"),
        ("kubernetes:kube.json?memory_unit=GB", "one of GiB, MiB"),
    ],
)
def test_wrong_cluster_texts(files: Path, text: str, part: str) -> None:
    with pytest.raises(FastsimError) as caught:
        Cluster.from_text(text)
    assert part in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("pods.parqet", "neither a file nor a known name"),
        ("synth:opnb?pods=3", "one of openb"),
        ("synth:openb?pod=3", "did you mean 'pods'"),
        ("synth:openb", "pods"),
        ("pods.parquet?drop=cpu_only", "unknown option 'drop'"),
        ("pods.csv?drop=gpu", "drop"),
        ("pods.csv?tune=much", "a ratio"),
        ("synth:openb?pods=3&tune=-1", "tune=-1"),
        ("synth:openb?pods=3&tune=true", "tune=True"),
        ("synth:openb?pods=3&tune=nan", "tune=nan"),
        ("synth:openb?pods=3&tune=inf", "tune=inf"),
        ("synth:openb?pods=3&tune=2&tune_seed=9223372036854775808", "tune_seed=9223372036854775808, expected a whole"),
        ("synth:openb?pods=3&tune=2&tune_seed=1.5", "tune_seed=1.5, expected a whole number from -2**63"),
        ("synth:openb?pods=10000000000", "at most 1,000,000,000 pods or jobs; FASTSIM_BUDGET=10 allows it"),
        ("synth:openb?pods=3&rate_per_hour=1e-320", "1e-06 to 4,000,000 arrivals per hour"),
        ("synth:openb?pods=3000&rate_per_hour=0.00001", "at most 100,000,000 hours of arrivals"),
        ("synth:gavel?jobs=10000000000", "at most 1,000,000,000 pods or jobs"),
        ("synth:gavel-trace?jobs=100000000", "at most 50,000,000 pods or jobs in memory"),
        ("synth:synergy?jobs=3&rate_per_hour=1e-320", "1e-06 to 4,000,000 arrivals per hour"),
        ("synth:synergy?jobs=10000000000", "at most 1,000,000,000 pods or jobs"),
        ("synth:synergy?jobs=3&log=10000000000", "at most 50,000,000 pods or jobs in memory"),
        ("synth:sia?jobs=3&rate_per_hour=1e-320", "1e-06 to 4,000,000 arrivals per hour"),
        ("synth:sia?jobs=10000000000", "at most 50,000,000 pods or jobs in memory"),
        ("synth:detectors?jobs=10000000000", "at most 50,000,000 pods or jobs in memory"),
        ("jobs.trace?origin=min", "unknown option 'origin'"),
        ("gavel:none.trace", "neither a file nor a known name"),
        ("synergy:jobs.csv?tune_sed=1", "did you mean 'tune_seed'"),
        ("philly:philly.csv?rules=none", "one of all, synergy"),
        ("kubernetes:none.yaml", "no such file or folder"),
        ("synth:synergy?jobs=3&split=1:2", "per cent of jobs for each of image, language, speech"),
        ("synth:gavel?pods=3", "unknown option 'pods'"),
        ("synth:gavel?jobs=3&durations=x", "durations"),
    ],
)
def test_wrong_workload_texts(files: Path, text: str, part: str) -> None:
    with pytest.raises(FastsimError) as caught:
        run_inputs.workload_from(text)
    assert part in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("maker", "name", "expected"),
    [
        (run_inputs.workload_from, "a.yaml", "kubernetes:{}"),
        (run_inputs.workload_from, "a.json", "kubernetes:{0} or philly:{0} or slurm:{0}"),
        (Cluster.from_text, "a.yml", "kubernetes:{}"),
    ],
)
def test_objects_are_no_tables(maker: Callable[[str], object], name: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("kind: Job")
    with pytest.raises(InputError) as error:
        maker(str(path))
    assert str(error.value).endswith("found no table, expected its kind: " + expected.format(path))


def test_other_objects_are_refused() -> None:
    with pytest.raises(ScenarioError, match="a text, a path or a Cluster"):
        Cluster.from_text(3)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="a text, a path or a Workload"):
        run_inputs.workload_from(None)
    with pytest.raises(InputError):
        run_inputs.typical_from("nowhere.parquet", Workload.synth("openb", pods=1))


def test_typical_options_are_checked(files: Path) -> None:
    pods = Workload.scan("pods.parquet")
    with pytest.raises(ScenarioError, match="did you mean 'threshold'"):
        run_inputs.typical_from("same?treshold=3", pods)
    with pytest.raises(ScenarioError, match="unknown option"):
        run_inputs.typical_from("typical.parquet?threshold=3", pods)


def test_several_files_of_kubernetes_objects_are_one_set(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", node("n1"), pod("p1", {"cpu": 1}))
    two = written(tmp_path / "b.json", node("n2"), pod("p2", {"cpu": 1}, nodeName="n2"))
    text = f"kubernetes:{one},{two}"
    assert len(Cluster.from_text(text)) == 2
    assert run_inputs.workload_from(text).workload.table()["bound_node"].to_pylist() == ["n2", None]


def test_short_workloads_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pods.parquet"
    fs.Workload.synth("openb", pods=50, seed=1).write(path)
    pods = fs.Workload.scan(path)
    held = in_memory(pods)
    assert isinstance(held.source, Held) and not isinstance(pods.source, Held) and in_memory(held) is held
    assert held.table().equals(pods.table()) and held.checksum() == pods.checksum()
    assert (held.name, held.metadata) == (pods.name, pods.metadata)
    endless = fs.Workload.synth("gavel", jobs=5, rate_per_hour=1.0)
    assert in_memory(endless) is endless and HELD_ROWS >= 50


def test_a_load_is_relative_to_the_cluster_beside_it() -> None:
    small, large = (Cluster.from_text(f"uniform?nodes={nodes}&gpu=T4") for nodes in (2, 20))
    text = "synth:openb?pods=50&seed=1&load=1"
    beside = run_inputs.workload_from(text, large).workload
    assert beside.table().equals(Workload.synth("openb", pods=50, seed=1, load=1, cluster=large).table())
    tables = [run_inputs.workload_from(text, cluster).workload.table() for cluster in (small, large)]
    last = [table["submit_s"][-1].as_py() for table in tables]
    assert last[0] > last[1] > 0
    with pytest.raises(ScenarioError, match="no cluster with GPUs"):
        run_inputs.workload_from(text)


def test_a_load_is_relative_to_each_cluster_of_a_sweep() -> None:
    text = "synth:openb?pods=50&seed=1&load=1"
    clusters = [Cluster.from_text(f"uniform?nodes={nodes}&gpu=T4") for nodes in (2, 20)]
    alone = [run_inputs.workload_from(text, cluster).workload.table() for cluster in clusters]
    OBJECTS.cache_for("test")
    try:
        cached = [run_inputs.workload_from(text, cluster).workload.table() for cluster in clusters]
    finally:
        OBJECTS.cache_for(None)
    assert all(one.equals(other) for one, other in zip(alone, cached, strict=True))


def test_seeds_below_zero_are_those_of_go() -> None:
    """There, a seed is taken modulo 2^31 - 1."""
    texts = [(f"openb:40?shuffle={seed}", f"synth:openb?pods=60&tune=0.9&tune_seed={seed}") for seed in (-1, 2**31 - 2)]
    below, above = (texts_of(*pair) for pair in texts)
    assert below == above != texts_of("openb:40?shuffle=1", "synth:openb?pods=60&tune=0.9&tune_seed=1")


def texts_of(cluster: str, workload: str) -> tuple[list[str], list[int]]:
    """Names of the nodes and ids of the pods, in the order of a run."""
    inputs = run_inputs.inputs_from(cluster, workload)
    return inputs.cluster.nodes["name"].to_pylist(), inputs.workload.table()["cpu_milli"].to_pylist()


def test_rows_that_an_importer_leaves_out_are_named_once(tmp_path: Path) -> None:
    head = "JobIDRaw|Submit|Start|End|State|AllocTRES\n"
    began = "2024-01-01T00:00:00|2024-01-01T00:00:01"
    ended = f"1|{began}|2024-01-01T01:00:00|COMPLETED|cpu=4,gres/gpu=1,mem=8G\n"
    runs = "2|2024-01-01T00:00:00|Unknown|Unknown|PENDING|cpu=4,gres/gpu=1,mem=8G\n"
    (tmp_path / "log.txt").write_text(head + ended + runs)
    with pytest.warns(RowsLeftOut, match="1 row left out, for which this does not hold: Start IS NOT NULL"):
        found = run_inputs.workload_from(f"slurm:{tmp_path / 'log.txt'}").workload
    assert found.rows == 1
    chosen = run_inputs.workload_from(f"slurm:{tmp_path / 'log.txt'}?where=State = 'COMPLETED'").workload
    assert chosen.rows == 1


def test_an_unknown_option_of_any_text_is_one_error_with_the_known_ones(files: Path) -> None:
    from fastsim.workload.generators.recipes import GENERATORS

    heads = [f"synth:{kind}" for kind in GENERATORS] + [f"{kind}:jobs.csv" for kind in PUBLISHED]
    heads += ["pods.csv", "pods.parquet", "csv:pods.csv", "jobs.trace", "gavel:jobs.txt", "synergy:jobs.csv"]
    heads += ["philly:philly.csv", "sia:jobs.csv", "kubernetes:kube.json", "openb:pods.csv"]
    for head in heads:
        with pytest.raises(ScenarioError, match=r"found unknown option 'nonsense', expected options among \w+, "):
            run_inputs.workload_from(f"{head}?nonsense=1")
    # The options of two makers are columns and node types, and PRESETS has patterns, too.
    for text in (*PRESETS, "gavel:1:1:1", "sia:1:1:1", "synergy:1", "openb:3", "csv:nodes.csv", "cluster.parquet"):
        if text != text.lower() or text in (
            "uniform",
            "mix",
        ):
            continue
        with pytest.raises(ScenarioError, match="found unknown option 'nonsense', expected options among"):
            Cluster.from_text(f"{text}?nonsense=1")
