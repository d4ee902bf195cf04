"""Columns updated by rows of bytes equal columns built one by one."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim_ext.select.byte_columns import ByteScoreColumns, columns_class
from fastsim_ext.select.normalised_columns import NormalisedScoreColumns
from fastsim_ext.select.score_columns import ScoreColumns
from fastsim_ext.select.state_memo import Memo
from tests.strategies import scenarios_per_run
from tests.unit.ext.scores.test_frag_grouped import THIRDS
from tests.unit.ext.select.test_indexed import COLUMNS, KeptDecision, cluster, trial
from tests.unit.ext.state.test_node_table import t4

FGD = OnlinePlan((ScoreTerm("fgd"),))
MODELS = ("T4", "A10")
REQUESTS = st.tuples(
    st.sampled_from((0, 500, 4000, 8000, 8001, 96_000)),
    st.sampled_from((0, 3, 7, 64)),
    st.sampled_from(((0, 0), (1, 300), (1, 301), (1, 1000), (2, 1000), (8, 1000))),
    st.sampled_from(((), ("T4",), ("A10",))),
)


class CoarseDecision(KeptDecision):
    """A selector whose memo distinguishes states only as far as fragmentation does."""

    def _join(self, options: dict[str, Any]) -> None:
        nodes = self.table.nodes
        nodes.retarget(self.table.target(THIRDS))
        self._select_with(Memo(nodes.width, 1, 10**6, np.array(sorted(THIRDS.cpu_milli), np.int64)), options)


def test_the_plan_tells_which_columns_there_are() -> None:
    def kind(*terms: ScoreTerm) -> type[ScoreColumns]:
        return columns_class(KeptDecision(t4(1), OnlinePlan(terms), {}).plan)

    assert kind(ScoreTerm("fgd")) is kind(ScoreTerm("fgd", weight=7)) is ByteScoreColumns
    assert kind(ScoreTerm("gpu_packing")) is kind(ScoreTerm("fgd", weight=-1)) is ScoreColumns
    assert kind(ScoreTerm("fgd"), ScoreTerm("pwr", normalise="min_max_100")) is NormalisedScoreColumns


@given(st.data())
@settings(max_examples=scenarios_per_run(60))
def test_every_change_of_a_node_is_followed(data: st.DataObject) -> None:
    gpus = data.draw(st.lists(st.sampled_from((0, 1, 2, 8)), min_size=1, max_size=7))
    models = [data.draw(st.sampled_from(MODELS)) if count else None for count in gpus]
    nodes = cluster(num_gpu=gpus, gpu_model=models)
    decision = CoarseDecision(nodes, FGD, COLUMNS | {"pack_changes": 0, "most_gaps": 0})
    few = data.draw(st.lists(REQUESTS, min_size=2, max_size=5))
    for cpu, mem, (num, milli), names in few:
        cls = decision.pod(num, milli, cpu, mem, *names)
        for _ in range(6):
            trial(decision, cls)
    for _ in range(data.draw(st.integers(1, 6))):
        n = data.draw(st.integers(0, len(gpus) - 1))
        left = [data.draw(st.sampled_from((0, 299, 300, 301, 999, 1000))) for _ in range(gpus[n])]
        cpu = data.draw(st.sampled_from((0, 499, 500, 3999, 8000, 50_000)))
        decision.table.nodes.load(n, cpu, data.draw(st.sampled_from((0, 3, 6, 64))), left, {})
        assert decision.select.verify() == 0
    assert decision.select.table.n_used > 0


def test_more_amounts_than_a_byte_can_tell_go_another_way() -> None:
    decision = CoarseDecision(t4(3, gpus=8), FGD, COLUMNS | {"drop_changes": 10**9, "columns_bytes": 2**40})
    for k in range(300):
        cls = decision.pod(1, 1000, 1 + k)
        for _ in range(4):
            trial(decision, cls)
    assert decision.select.table.n_used == 256
    decision.table.nodes.load(1, 250, 3, [1000] * 8, {})
    assert decision.select.verify() == 0


@pytest.mark.parametrize("full", [False, True])
def test_a_node_that_is_gone_or_full_takes_nobody(full: bool) -> None:
    decision = CoarseDecision(cluster(num_gpu=[8, 8], gpu_model=["T4", "T4"], max_pods=[1, 9]), FGD, COLUMNS)
    cls = decision.pod(1, 500, 1000)
    for _ in range(6):
        trial(decision, cls)
    assert trial(decision, cls)[0] == 0
    if full:
        assert decision.online.trial(cls) >= 0  # the one pod it may have, which stays
    else:
        decision.table.columns["present"][0] = 0  # before the change of the last question is followed
    assert trial(decision, cls)[0] == 1 and decision.select.verify() == 0
