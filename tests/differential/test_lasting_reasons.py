"""A pod that no empty node hosts: the run, its warning, an explanation and the check of its trace name one reason."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import fastsim as fs
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.run import run_online
from fastsim.scenario.sort_keys import SERVED
from fastsim.simulation.run_warnings import PodNeverFits, PodTooLarge
from fastsim.simulation.simulate import run
from fastsim.workload.lint import trace_findings
from fastsim.workload.oversized_pods import OBSTACLES, Oversized
from fastsim.workload.schema import pod_schema
from tests.strategies import LONG_S, Scenario, ruled, scenarios_per_run

NODE = {"name": "big", "cpu_milli": 8000, "memory_mib": 64, "num_gpu": 2, "gpu_model": "V100M32"}
SMALL = {"name": "small", "cpu_milli": 4000, "memory_mib": 32, "num_gpu": 4, "gpu_model": "A100"}
POD = {"pod_id": 0, "submit_s": 0.0, "duration_s": 1.0, "cpu_milli": 100, "memory_mib": 1, "num_gpu": 1,
       "gpu_milli": 1000}  # fmt: skip
CPU_NODE = {**NODE, "num_gpu": 0, "gpu_model": None}
NIC = {"extra_resources": [("nic", 1)]}
CASES: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "more GPUs than a node has": ("too_large", [NODE, SMALL], {"num_gpu": 5}),
    "more GPUs of a model": ("too_large", [NODE, SMALL], {"num_gpu": 3, "gpu_models": ["V100M32"]}),
    "more CPUs": ("too_large", [NODE, SMALL], {"cpu_milli": 9000}),
    "more memory": ("too_large", [NODE, SMALL], {"memory_mib": 65}),
    "another model": ("no_gpu_model", [NODE, SMALL], {"gpu_models": ["V100"]}),
    "another model and more GPUs": ("no_gpu_model", [NODE, SMALL], {"gpu_models": ["V100"], "num_gpu": 9}),
    "no GPU at all": ("no_gpu", [CPU_NODE], {}),
    "no GPU at all, of a model": ("no_gpu", [CPU_NODE], {"gpu_models": ["A100"]}),
    "memory of a GPU": ("no_gpu_memory", [{**NODE, "gpu_memory_mib": 16}], {"gpu_memory_mib": 17}),
    "a further resource": ("no_extra", [NODE, {**SMALL, "extra_resources": [("nic", 1)]}],
                           {"extra_resources": [("nic", 2)]}),
    "a resource that no node has": ("no_extra", [NODE], NIC),
    "an instance of a GPU": ("no_extra", [{**NODE, "gpu_model": "A100-40GB", "mig": ["3g.20gb", ""]}],
                             {"mig": "7g.40gb", "num_gpu": 0, "gpu_milli": 0}),
    "a node that is absent": ("no_match", [NODE, SMALL], {"pinned_node": "huge"}),
    "a label": ("no_match", [NODE, SMALL], {"constraints": [{"key": "zone", "op": "Exists", "values": []}]}),
    "a label of a node that is too small": (
        "no_match", [NODE, {**SMALL, "labels": [("zone", "a")]}],
        {"constraints": [{"key": "zone", "op": "Exists", "values": []}], "cpu_milli": 5000},
    ),
    "a domain of spread": ("no_match", [NODE, SMALL], {"spread": [
        {"pods": "a", "topology": "rack", "max_skew": 1, "min_domains": None, "counted": None}
    ], "spread_sets": ["a"]}),
}  # fmt: skip
"""By what is asked for: the reason, the nodes, and the request."""
PLAIN = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_models")
QUEUES = ("drop", "fifo", "easy", "drf")


def played(nodes: list[dict[str, Any]], request: dict[str, Any], **fields: Any) -> fs.Scenario:
    pod = POD | request
    if "tenant" in fields:
        pod["tenant"] = fields.pop("tenant")
    workload = fs.Workload.from_arrow(pa.Table.from_pylist([pod], pod_schema(list(pod))))
    return fs.Scenario(fs.Cluster.mix([(1, node) for node in nodes]), workload, "best_fit", **fields)


def test_every_obstacle_has_a_case() -> None:
    assert {reason for reason, _, _ in CASES.values()} == OBSTACLES.keys()


@pytest.mark.parametrize("rules", [{}, {"tenant": "anna", "quotas": "anna:cpu_milli=100000"}])
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.OptionUnused")  # of some of the cases
def test_everything_that_speaks_of_a_pod_names_the_same_reason(case: str, queue: str, rules: dict[str, Any]) -> None:
    reason, nodes, request = CASES[case]
    scenario = played(nodes, request, queue=queue, **rules)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", PodTooLarge)
        result = run(scenario)
    assert result.jobs["reason"].to_list() == [reason] and result.jobs["state"].to_list() == ["unplaced"]
    assert result.placements["reason"].to_list() == [reason]
    (warning,) = [one for one in warned if issubclass(one.category, PodTooLarge)]
    assert (warning.category is PodTooLarge) == (reason == "too_large")
    assert OBSTACLES[reason] in str(warning.message) or warning.category is not PodNeverFits
    assert set(fs.explain(scenario, pods=[0])["outcome"]) == {reason}
    errors = [one for one in trace_findings(scenario.workload, scenario.cluster) if one.level == "error"]
    assert len(errors) == 1 and errors[0].rows == 1
    assert any(words in errors[0].text for words in (OBSTACLES[reason], *LINTED.get(reason, ())))


LINTED = {
    "too_large": ["larger than any node"], "no_match": ["the only node it may use is not in the cluster"],
    "no_gpu_model": ["none of its GPU models is in the cluster, which has A100, V100M32"],
}  # fmt: skip
"""Other words of the check of a trace, which names rows."""


def test_a_warning_about_a_model_has_those_asked_for_those_there_and_the_nearest() -> None:
    with pytest.warns(PodNeverFits) as warned:
        run(played([NODE, SMALL], {"gpu_models": ["V100", "H100"], "num_gpu": 2}))
    assert str(warned[0].message) == (
        "1 pod stayed unplaced (no_gpu_model): no node has a GPU of the models asked for, for example 100 milli-CPU, "
        "1 MiB, 2 x 1000 milli-GPU, model V100 or H100: asked for V100, H100, the cluster has A100, V100M32; "
        "did you mean 'V100M32'?"
    )


def test_a_gang_larger_than_the_cluster_is_called_so() -> None:
    pods = [POD | {"pod_id": k, "job_id": 1, "gang_size": 7} for k in range(7)]
    workload = fs.Workload.from_arrow(pa.Table.from_pylist(pods, pod_schema(list(pods[0]))))
    scenario = fs.Scenario(fs.Cluster.mix([(1, NODE), (1, SMALL)]), workload, "best_fit", queue="fifo")
    assert set(run(scenario).jobs["reason"]) == {"gang_too_large"}
    assert set(fs.explain(scenario, pods=[3])["outcome"]) == {"gang_too_large"}


unserved = tuple(rule for rule in ("fifo", "fifo_skip", "priority", "easy", "drf") if rule not in SERVED)


@settings(max_examples=scenarios_per_run(300))
@given(ruled(queues=unserved, gangs=False))
def test_the_warning_counts_the_pods_that_leave_for_each_reason(scenario: Scenario) -> None:
    s, oversized = scenario, Oversized(scenario.cluster)
    rules = replace(s.rules, quotas={})
    options = OnlineOptions(seed=s.seed, rules=rules, until_s=LONG_S, oversized=oversized)
    jobs = run_online(s.cluster, s.workload, s.plan, s.typical, options).jobs
    left = jobs.filter(pl.col("state") == "unplaced")
    counts = dict(left.group_by("reason", maintain_order=True).len().iter_rows())
    assert {str(reason): count for reason, count in counts.items()} == {
        reason: kept.count for reason, kept in oversized.kept.items()
    }
