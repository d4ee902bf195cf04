"""Pods are found by id or name, and a run is played again as far as the question needs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fastsim.decisions.replay import LargeRecord, SelectedPod, decision_bytes, replayed, sampled_pods, selected_pods
from fastsim.engine.online.closing_stages import Deschedule, RunningPod, RunView
from fastsim.errors import InputError, ScenarioError
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.pods import Prepared, prepared
from fastsim.workload import Workload
from tests.unit.ext.state.test_node_table import t4


def pods(*rows: dict[str, Any]) -> Workload:
    """Pods that arrive every second and hold a whole GPU for ever, unless fields are given."""
    usual = {"cpu_milli": 0, "memory_mib": 0, "num_gpu": 1, "gpu_milli": 1000, "duration_s": None}
    table = [{"pod_id": 10 + i, "submit_s": float(i), **usual, **row} for i, row in enumerate(rows)]
    types = {"duration_s": pa.float64(), "native_id": pa.string()}
    return Workload.from_arrow(pa.table({n: pa.array([r.get(n) for r in table], types.get(n)) for n in table[0]}))


def made(workload: Workload, nodes: int = 1, **options: Any) -> Prepared:
    """A best-fit run on nodes of two T4."""
    return prepared(Scenario(t4(nodes), workload, "best_fit", **options))


def named(*names: str | None) -> Workload:
    """Pods with these names in the source."""
    return pods(*({"native_id": name} for name in names))


class LastFirst:
    """Takes every pod off its node, the last that came first."""

    def victims(self, view: RunView, limit: int) -> list[RunningPod]:
        """All of them."""
        return view.pods[::-1]


def test_pods_by_id_and_by_name() -> None:
    workload = named("job-a", "11", None, "job-a")
    assert selected_pods(workload, [12]) == {2: SelectedPod(2, 12, None)}
    assert selected_pods(workload, ["11"]) == {1: SelectedPod(1, 11, "11")}
    assert list(selected_pods(workload, ["job-a", 11])) == [0, 3, 1]


def test_digits_are_an_id_if_there_is_such_an_id() -> None:
    workload = named("11", "b", "77")
    assert list(selected_pods(workload, ["11", "77"])) == [1, 2]
    with pytest.raises(InputError, match="pod 77: found no such pod"):  # a number is never a name
        selected_pods(workload, [77])


def test_names_in_a_workload_without_names() -> None:
    assert list(selected_pods(pods({}, {}), ["11"])) == [1]
    with pytest.raises(InputError, match="pod 'job-a': found no such pod in the workload"):
        selected_pods(pods({}, {}), ["job-a"])


@pytest.mark.parametrize(
    ("count", "chosen"), [(1, [0]), (2, [0, 6]), (3, [0, 3, 6]), (7, list(range(7))), (99, list(range(7)))]
)
def test_a_sample_is_spread_over_the_run(count: int, chosen: list[int]) -> None:
    found = sampled_pods(pods(*({} for _ in range(7))), count)
    assert list(found) == chosen and [pod.pod_id for pod in found.values()] == [10 + seq for seq in chosen]


def test_a_sample_of_nothing_is_empty() -> None:
    assert sampled_pods(Workload.from_arrow(pods({}).table().slice(0, 0)), 3) == {}


def tries(workload: Workload, pod_id: int, attempt: str, **options: Any) -> list[tuple[int, float, int]]:
    """(attempt, time in s, node) of the decisions about a pod."""
    ready = made(workload, **options)
    return [(d.attempt, d.t_s, d.node) for d in replayed(ready, selected_pods(workload, [pod_id]), attempt)]


def test_first_placed_and_all_attempts_of_a_pod_that_waits() -> None:
    workload = pods({"duration_s": 5.0}, {"duration_s": 7.0}, {"num_gpu": 2})
    assert tries(workload, 12, "first", queue="fifo_skip") == [(0, 2.0, -1)]
    assert tries(workload, 12, "placed", queue="fifo_skip") == [(2, 8.0, 0)]
    assert tries(workload, 12, "all", queue="fifo_skip") == [(0, 2.0, -1), (1, 5.0, -1), (2, 8.0, 0)]


def test_a_pod_that_never_fits_has_its_last_attempt() -> None:
    workload = pods({"duration_s": 5.0}, {}, {"num_gpu": 2})
    assert tries(workload, 12, "all", queue="fifo") == [(0, 2.0, -1), (1, 5.0, -1)]
    assert tries(workload, 12, "placed", queue="fifo") == [(1, 5.0, -1)]
    assert tries(workload, 12, "placed") == [(0, 2.0, -1)]


def test_a_pod_behind_others_is_not_tried() -> None:
    workload = pods({}, {}, {"num_gpu": 2}, {})
    assert tries(workload, 13, "all", queue="fifo") == []
    assert tries(workload, 11, "placed", until_s=0.5) == []


def test_a_pod_too_large_is_looked_at_once() -> None:
    workload = pods({"num_gpu": 3})
    (decision,) = replayed(made(workload), selected_pods(workload, [10]), "placed")
    assert decision.never == "too_large" and decision.found__n.tolist() == [2] and decision.needed__n.tolist() == [3]


def test_the_run_stops_where_the_answer_is_known() -> None:
    workload = pods(*({} for _ in range(6)))
    played: list[int] = []

    def watch(arrived: int) -> None:
        played.append(arrived)

    ready = prepared(Scenario(t4(1), workload, "best_fit"), progress=watch)
    replayed(ready, selected_pods(workload, [11]), "placed")
    assert played == []
    replayed(ready, selected_pods(workload, [11]), "all")
    assert played[-1] == 6


def test_pods_that_are_moved_after_the_run_are_tried_again() -> None:
    workload = pods({"gpu_milli": 300}, {"gpu_milli": 600})
    moves: dict[str, Any] = {"deschedule": (Deschedule(LastFirst(), 1.0),), "nodes": 2}
    assert tries(workload, 10, "placed", **moves) == [(0, 0.0, 0)]
    assert tries(workload, 10, "all", **moves) == [(0, 0.0, 0), (1, 1.0, 0)]


def test_an_unknown_choice_of_attempts() -> None:
    with pytest.raises(ScenarioError, match="attempt: found 'last', expected one of first, placed, all"):
        replayed(made(pods({})), {}, "last")


def test_a_name_without_its_namespace_where_one_namespace_has_it() -> None:
    workload = named("default/p7", "a/p8", "b/p8", "p8x", "c/d/p9", None)
    assert list(selected_pods(workload, ["p7"])) == [0]
    assert list(selected_pods(workload, ["b/p8"])) == [2]
    with pytest.raises(InputError, match="pod 'p8': found 2 pods of that name: a/p8, b/p8, expected one of them"):
        selected_pods(workload, ["p8"])
    with pytest.raises(InputError, match="no such pod"):
        selected_pods(workload, ["p"])


def test_decisions_that_would_take_too_much_are_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decision_bytes(1000, 2) == 1000 * (4 + 4 + 8 + 8 + 8 + 2 * (8 + 8))
    workload = pods({}, {}, {})
    inputs = made(workload)
    chosen = sampled_pods(workload, 3)
    monkeypatch.setenv("FASTSIM_BUDGET", str(2 * decision_bytes(1, len(inputs.plan.terms)) / 2**32))
    with pytest.raises(ScenarioError, match=r"explain: found .* bytes of recorded decisions, .*select fewer pods"):
        replayed(inputs, chosen)
    with pytest.warns(LargeRecord, match=r"bytes of recorded decisions$"):
        assert len(replayed(inputs, sampled_pods(workload, 2))) == 2


def test_all_attempts_of_a_pod_stop_at_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = pods({"duration_s": 5.0}, {"duration_s": 7.0}, {"num_gpu": 2})
    inputs = made(workload, queue="fifo_skip")
    waiting = selected_pods(workload, [12])
    assert len(replayed(inputs, waiting, "all")) == 3
    monkeypatch.setenv("FASTSIM_BUDGET", str(2 * decision_bytes(1, len(inputs.plan.terms)) / 2**32))
    with pytest.warns(LargeRecord), pytest.raises(ScenarioError, match="bytes of recorded decisions, expected at most"):
        replayed(inputs, waiting, "all")


def test_a_large_record_says_before_the_run_how_much_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = pods({}, {}, {})
    inputs = made(workload)
    each = decision_bytes(1, len(inputs.plan.terms))
    monkeypatch.setenv("FASTSIM_BUDGET", str(10 * each / 2**32))
    with pytest.warns(LargeRecord, match=f"explain: {3 * each} bytes of recorded decisions, or more if pods are tried"):
        replayed(inputs, sampled_pods(workload, 3), "all")
