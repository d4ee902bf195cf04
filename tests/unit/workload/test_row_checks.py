"""What a pod row must look like, at the edges of every rule and across batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.workload.row_checks import (
    CPU_LIMIT,
    MEMORY_LIMIT,
    Fault,
    RowOrder,
    all_ids,
    checked,
    conformed,
    request_fault,
    required_columns,
)
from fastsim.workload.schema import OPTIONAL, POD_SCHEMA, REQUIRED

GOOD: dict[str, list[Any]] = {
    "pod_id": [0, 1, 2], "submit_s": [0.0, 1.0, 2.0], "cpu_milli": [1, 2, 3], "memory_mib": [1, 2, 3],
    "num_gpu": [0, 1, 2], "gpu_milli": [0, 500, 1000],
}  # fmt: skip


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(GOOD | columns)


def good(**columns: Any) -> pa.RecordBatch:
    conforming = conformed(batch(**columns))
    assert isinstance(conforming, pa.RecordBatch)
    return conforming


def test_conforming_sorts_columns_drops_strange_ones_and_casts() -> None:
    conforming = good(colour=["r", "g", "b"], qos=["b", None, "a"], cpu_milli=["1", "2", "3"])
    assert conforming.schema.names == [*REQUIRED, "qos"]
    assert conforming.column("cpu_milli").to_pylist() == [1, 2, 3]
    assert conforming.column("qos").type == POD_SCHEMA.field("qos").type


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"cpu_milli": [1.0, 2.5, 3.0]}, Fault(1, "cpu_milli", "2.5", "a value of type int64")),
        ({"pod_id": [0, None, 2]}, Fault(1, "pod_id", "null", "a value (int64)")),
        ({"priority": [0, 2**31, 0]}, Fault(1, "priority", str(2**31), "a value of type int32")),
        (
            {"priority": pa.array([500, 1, 2], pa.timestamp("ns", "UTC"))},  # Python has no value for the first one
            Fault(0, "priority", "a value of type timestamp[ns, tz=UTC]", "a value of type int32"),
        ),
        ({"gpu_models": [1, 2, 3]}, Fault(0, "gpu_models", "1", "a value of type list<item: string>")),
    ],
)
def test_the_first_cell_that_cannot_be_converted(columns: dict[str, Any], fault: Fault) -> None:
    found = conformed(batch(**columns))
    assert isinstance(found, Fault)
    assert (found.row, found.column, found.found) == (fault.row, fault.column, fault.found)
    assert found.expected.split("<")[0] == fault.expected.split("<")[0]


def test_the_edges_of_the_rules_are_allowed() -> None:
    conforming = good(
        cpu_milli=[0, CPU_LIMIT, 1], memory_mib=[0, MEMORY_LIMIT, 1], num_gpu=[1, 1, 32_767], gpu_milli=[1, 1000, 1000],
        duration_s=[0.0, None, 2.0**53], deadline_s=[1e9, None, 1e9], gang_size=[1, None, 2], job_id=[None, None, 7],
        max_per_node=[0, None, 1], group=["a", None, "a"], orig_start_s=[-5.0, None, None], slo=[0.0, None, None],
    )  # fmt: skip
    assert request_fault(conforming) is None


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"cpu_milli": [0, CPU_LIMIT + 1, 0]}, Fault(1, "cpu_milli", CPU_LIMIT + 1, f"0 to {CPU_LIMIT}")),
        ({"memory_mib": [0, 0, MEMORY_LIMIT + 1]}, Fault(2, "memory_mib", MEMORY_LIMIT + 1, f"0 to {MEMORY_LIMIT}")),
        ({"gpu_memory_mib": [None, -1, None]}, Fault(1, "gpu_memory_mib", -1, f"0 to {MEMORY_LIMIT}")),
        ({"batch_size": [0, 0, -7]}, Fault(2, "batch_size", -7, f"0 to {MEMORY_LIMIT}")),
        ({"gang_size": [None, 0, 1]}, Fault(1, "gang_size", 0, f"1 to {CPU_LIMIT}")),
        ({"gpu_milli": [0, 0, 1000]}, Fault(1, "gpu_milli", 0, "1 to 1000")),
        ({"gpu_milli": [0, 1, 999]}, Fault(2, "gpu_milli", 999, "1000, because num_gpu is more than 1")),
        ({"gpu_milli": [-1, 1, 1000]}, Fault(0, "gpu_milli", -1, "0, because num_gpu is 0")),
        ({"total_work": [1.0, None, -1.0]}, Fault(2, "total_work", -1.0, "a finite number, not negative")),
        ({"est_duration_s": [None, -1.0, None]},
         Fault(1, "est_duration_s", -1.0, "a finite number of seconds, not negative")),
        ({"duration_s": [None, -1.0, None]},
         Fault(1, "duration_s", -1.0, "a finite number of seconds, not negative; null = runs for ever")),
        ({"duration_s": [None, 1e308, None]},
         Fault(1, "duration_s", 1e308, "at most 2**53 s, not negative; null = runs for ever")),
        ({"submit_s": [-1e300, 0.0, 1.0]}, Fault(0, "submit_s", -1e300, "at most 2**53 s")),
        ({"total_work": [None, None, 1e300]}, Fault(2, "total_work", 1e300, "at most 2**53, not negative")),
        ({"weight": [1.0, None, 0.0]}, Fault(2, "weight", 0.0, "a number above 0, at most 2**53; null = 1")),
        ({"weight": [0.5, float("inf"), 1.0]},
         Fault(1, "weight", float("inf"), "a number above 0, at most 2**53; null = 1")),
        ({"slo": [None, float("-inf"), None]}, Fault(1, "slo", float("-inf"), "a finite number, not negative")),
        ({"slo": [None, -1.0, None]}, Fault(1, "slo", -1.0, "a finite number, not negative")),
        (
            {"deadline_s": [None, None, -1.0], "submit_s": [-3.0, -2.5, -0.5]},
            Fault(2, "deadline_s", -1.0, "submit_s (-0.5) or later; null = none"),
        ),
        ({"gpu_models": [None, ["A"], []]}, Fault(2, "gpu_models", "an empty list", "at least one model; null = any")),
        ({"gpu_models": [None, ["A", ""], [""]]}, Fault(1, "gpu_models", "['A', '']", "model names")),
        ({"mig": [None, "1g.5gb+2g", "x"]}, Fault(1, "mig", "1g.5gb+2g", "instances such as '1g.10gb' or '2*1g.10gb'")),
        ({"mig": ["", None, "2*1g.5gb"]}, Fault(0, "mig", "", "instances such as '1g.10gb' or '2*1g.10gb'")),
    ],
)  # fmt: skip
def test_each_rule_names_its_cell(columns: dict[str, Any], fault: Fault) -> None:
    assert request_fault(good(**columns)) == fault


@pytest.mark.parametrize("name", ["mig-1g.4gb", "nvidia.com/mig-1g.4gb"])
def test_instances_that_no_model_has_are_refused_under_any_name(name: str) -> None:
    amounts = pa.array([[("mig-1g.5gb", 1)], [("nic", 1), (name, 1)], None], POD_SCHEMA.field("extra_resources").type)
    for columns, column in (
        ({"extra_resources": amounts}, "extra_resources"),
        ({"mig": [None, "1g.4gb", None]}, "mig"),
    ):
        fault = request_fault(good(**columns))
        assert fault is not None and (fault.row, fault.column) == (1, column)
        assert fault.expected.startswith("one of: mig-1g.6gb, mig-1g.6gb.me, ")


def test_the_first_row_is_told_whatever_rule_it_breaks() -> None:
    conforming = good(cpu_milli=[1, 1, -1], gpu_milli=[0, 2000, 1000], gpu_models=[[], None, None])
    assert request_fault(conforming) == Fault(0, "gpu_models", "an empty list", "at least one model; null = any")
    assert request_fault(good(cpu_milli=[1, 1, -1], gpu_milli=[0, 2000, 1000])) == Fault(
        1, "gpu_milli", 2000, "1 to 1000"
    )


def test_rows_of_a_slice_count_from_its_beginning() -> None:
    models = {"gpu_models": [["A", "B", "C"], None, ["D", ""]]}
    conforming = conformed(batch(**models).slice(1))
    assert isinstance(conforming, pa.RecordBatch)
    assert request_fault(conforming) == Fault(1, "gpu_models", "['D', '']", "model names")


def test_empty_batches_break_no_rule() -> None:
    empty = good(duration_s=[1.0, 2.0, 3.0], gpu_models=[["A"], None, None], gang_size=[1, 1, 1]).slice(0, 0)
    assert request_fault(empty) is None and RowOrder(list).fault(empty) is None


def test_order_is_carried_over_batches_even_over_an_empty_one() -> None:
    order = RowOrder(list)
    assert order.fault(good()) is None
    assert order.fault(good().slice(0, 0)) is None
    late = good(pod_id=[3, 4, 5], submit_s=[1.5, 2.0, 2.0])
    assert order.fault(late) == Fault(0, "submit_s", "1.5 after 2.0", "rows sorted by submit_s")


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        ([[0, 1, 2], [2, 3, 4]], (1, 0, "2, as in row 3")),
        ([[5, 1, 2], [0, 1, 7]], (1, 1, "1, as in row 2")),
        ([[5, 5, 5], [0, 1, 7]], (0, 1, "5, as in row 1")),
        ([[9, 1, 2], [0, -1, 7]], None),
        ([[-(2**63) + 1, 0, 1], [2, 3, 4]], None),
        ([[-(2**63), 0, 1], [2, 3, 4]], None),
    ],
)
def test_every_id_stands_once_in_any_order(ids: list[list[int]], fault: tuple[int, int, str] | None) -> None:
    batches = [good(pod_id=some, submit_s=[2.0] * 3) for some in ids]
    order, found = RowOrder(lambda: batches), None
    for number, one in enumerate(batches):
        broken = order.fault(one)
        if broken is not None and found is None:
            found = number, broken.row, str(broken.found)
            assert (broken.column, broken.expected) == ("pod_id", "every id once")
    assert found == fault


def test_ids_that_rise_are_read_once() -> None:
    opened: list[int] = []
    last: list[int] = []

    def source() -> list[pa.RecordBatch]:
        opened.append(1)
        return [batch(), batch(pod_id=last, submit_s=[2.0, 3.0, 4.0])]

    for ids, times in (([3, 4, 5], 1), ([5, 4, 3], 3)):
        last[:] = ids
        assert sum(one.num_rows for one in checked(source, "row {}".format)) == 6
        assert len(opened) == times


def test_ids_up_to_the_first_that_is_none_are_compared() -> None:
    names = pa.RecordBatch.from_pydict({"pod_id": ["a"]})
    nothing = pa.RecordBatch.from_pydict({"pod_id": pa.array([None, 1], pa.int64())})
    for last in (names, nothing):
        assert all_ids([batch(), last, batch()]).tolist() == [0, 1, 2]


def test_rows_are_counted_over_the_whole_stream() -> None:
    both = [batch(), batch(pod_id=[3, 4, 5], submit_s=[2.0, 3.0, 4.0], cpu_milli=[1, -5, 1])]
    stream = iter(checked(lambda: both, "row {}".format))
    assert next(stream).num_rows == 3
    with pytest.raises(InputError, match=r"^row 4: cpu_milli: found -5, expected 0 to 2147483647$"):
        next(stream)


def test_columns_are_judged_by_their_names() -> None:
    required_columns("w", [*REQUIRED, "colour", "watts"])  # strange, but not like any column
    required_columns("w", [*REQUIRED, "duration_s", "durations_s"])  # the right one is there too
    with pytest.raises(InputError) as error:
        required_columns("w", [name for name in REQUIRED if name != "num_gpu"])
    assert error.value.where == "w: num_gpu" and error.value.do == ""
    with pytest.raises(InputError, match=r"; times are seconds: submit_s, duration_s$"):
        required_columns("w", ["pod_id", "submit_us"])
    with pytest.raises(InputError, match="w: gpu_model: found an unknown column, expected gpu_models; rename or drop"):
        required_columns("w", [*REQUIRED, "gpu_model"])
    required_columns("w", [*REQUIRED, *OPTIONAL])
