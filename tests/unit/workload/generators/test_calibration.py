"""Request statistics counted by hand on a few pods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.workload import Workload
from fastsim.workload.generators.calibration import CLASSES, constraint_model, request_class, request_model

Pod = tuple[int, int, int, int, str]


def workload(pods: list[Pod], models: list[list[str] | None] | None = None) -> Workload:
    columns: dict[str, Any] = {
        name: [pod[k] for pod in pods]
        for k, name in enumerate(("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos"))
    }
    count = len(pods)
    table = {"pod_id": list(range(count)), "submit_s": [0.0] * count, **columns}
    return Workload.from_arrow(pa.table(table | ({"gpu_models": models} if models else {})))


COMMON: list[Pod] = [(1000, 10, 1, 500, "LS")] * 3 + [(1000, 10, 1, 500, "BE")] + [(500, 5, 0, 0, "LS")] * 2


def test_classes_split_at_one_whole_device() -> None:
    count, milli = np.array([0, 1, 1, 1, 2, 8]), np.array([0, 1, 999, 1000, 1000, 1000])
    assert [CLASSES[k] for k in request_class(count, milli)] == ["cpu", "share", "share", "one", "multi", "multi"]


def test_frequent_requests_have_their_share_and_mix() -> None:
    model = request_model(workload(COMMON))
    assert model["qos"] == ["LS", "BE"]  # the commonest first
    assert model["frequent"] == [[1000, 10, 1, 500, 0.6667, 0.75, 0.25], [500, 5, 0, 0, 0.3333, 1.0, 0.0]]
    assert model["tail"] == {}


def test_equally_common_requests_stand_in_order_of_size() -> None:
    pods: list[Pod] = [(2000, 1, 0, 0, "LS"), (1000, 2, 0, 0, "LS"), (1000, 1, 0, 0, "LS")]
    frequent = request_model(workload(pods), tuples=2)["frequent"]
    assert [row[:2] for row in frequent] == [[1000, 1], [1000, 2]]


def test_the_rest_is_fitted_class_by_class() -> None:
    rare: list[Pod] = [(1000, 1000, 2, 1000, "BE"), (4000, 16_000, 8, 1000, "LS"), (2000, 2000, 0, 0, "LS")]
    model = request_model(workload(COMMON + rare), tuples=2)
    assert set(model["tail"]) == {"cpu", "multi"}
    multi = model["tail"]["multi"]
    assert (multi["p"], multi["cpu_milli"], multi["qos"]) == (round(2 / 9, 4), [1000, 4000], [0.5, 0.5])
    assert multi["devices"] == [[2, 1000, 0.5], [8, 1000, 0.5]]
    # ln 1000 and ln 4000: their mean and half their distance; ln(memory/cpu) is 0 and ln 4.
    assert multi["ln_cpu_milli"] == [round(math.log(2000), 4), round(math.log(2), 4)]
    assert multi["ln_mib_per_milli"] == [round(math.log(2), 4), round(math.log(2), 4)]
    assert multi["correlation"] == 1.0


def test_a_class_of_one_pod_varies_with_nothing() -> None:
    rare: list[Pod] = [(2000, 2000, 0, 0, "LS")]
    tail = request_model(workload(COMMON + rare), tuples=2)["tail"]["cpu"]
    assert (tail["ln_cpu_milli"], tail["correlation"]) == ([round(math.log(2000), 4), 0.0], 0.0)


def test_pods_that_ask_for_nothing_are_left_out_of_the_logarithms() -> None:
    rare: list[Pod] = [(0, 100, 0, 0, "LS"), (2000, 0, 0, 0, "LS"), (4000, 8000, 0, 0, "LS")]
    tail = request_model(workload(COMMON + rare), tuples=2)["tail"]["cpu"]
    assert tail["ln_cpu_milli"] == [round(math.log(4000), 4), 0.0] and tail["cpu_milli"] == [0, 4000]
    assert tail["p"] == round(3 / 9, 4)


def test_model_sets_forget_order_and_repeats() -> None:
    pods: list[Pod] = [(1, 1, 1, 500, "LS")] * 4 + [(1, 1, 1, 1000, "LS")] * 2 + [(1, 1, 0, 0, "LS")]
    models = [["T4", "A10"], ["A10", "T4", "T4"], ["T4"], None, None, None, ["G2"]]
    model = constraint_model(workload(pods, models))
    assert model["share"] == 0.5
    assert model["share_by_class"] == {"share": 0.75, "one": 0.0, "multi": 0.0}  # of no pods, none name any
    assert model["sets"] == [[["A10", "T4"], 0.5], [["G2"], 0.25], [["T4"], 0.25]]


@pytest.mark.parametrize("tuples", [1, 2, 40])
def test_shares_of_frequent_and_rest_are_everything(tuples: int) -> None:
    rare: list[Pod] = [(1000, 1000, 2, 1000, "BE"), (4000, 16_000, 8, 1000, "LS"), (2000, 2000, 0, 0, "LS")]
    model = request_model(workload(COMMON + rare), tuples=tuples)
    shares = [row[4] for row in model["frequent"]] + [tail["p"] for tail in model["tail"].values()]
    assert sum(shares) == pytest.approx(1, abs=5e-5 * len(shares))  # each is rounded to 4 decimals
