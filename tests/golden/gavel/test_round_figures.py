"""Figures of the recorded runs that need no solver: those in the original's own summary."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from fastsim.engine.rounds.job_metrics import round_figures
from tests.golden.gavel import gavel
from tests.golden.gavel.gavel_runs import SOLVED, Recorded, Replay, recorded, runs

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")


@pytest.mark.parametrize("run", [r for r in runs() if not r.policy.startswith(SOLVED)], ids=lambda run: run.id)
def test_figures_are_those_of_the_summary(run: Recorded) -> None:
    row, found = run.row, round_figures(run.outcome)
    assert (found.rounds, found.calls, found.makespan_s) == (row["n_rounds"], row["n_solves"], row["makespan"])
    assert found.given_up == row["n_failed"]
    assert found.lease_extension_share == row["lease_ext"] / row["lease_ext_opp"]
    # Means of the same numbers added up in another order.
    assert found.jct_mean_s == pytest.approx(row["average_jct"], rel=1e-12)
    assert found.utilization == pytest.approx(row["utilization"], rel=1e-12)
    models = found.utilization_by_model
    assert models == pytest.approx({model: row[f"util_{model}"] or 0.0 for model in models}, rel=1e-12)
    for name, weight in (("avg_jct_high", 5.0), ("avg_jct_low", 1.0)):
        if row[name] is not None:
            assert found.jct_mean_by_weight_s[weight] == pytest.approx(row[name], rel=1e-12)
    assert found.cost == pytest.approx(row["total_cost"], rel=1e-12)


@pytest.mark.parametrize("run", [r for r in recorded("replay") if r.row["total_cost"]], ids=lambda run: run.id)
def test_cost_and_missed_deadlines_are_those_of_the_summary(run: Recorded) -> None:
    played = run.played(dataclasses.replace(run.plan(), allocator=Replay(run)))
    found = round_figures(played, slo_compare_absolute=True)
    assert found.cost == pytest.approx(run.row["total_cost"], rel=1e-12)  # added up in another order
    if run.row["slo_violations"] is None:
        return
    assert found.slo_violations == run.row["slo_violations"]
    deadlines = json.loads((gavel.GAVEL / "sim" / f"{run.id}.slo_deadlines.json").read_text())
    expected = np.array([deadlines[str(job)] for job in played.jobs["id"]])
    assert played.jobs["deadline_s"] == pytest.approx(expected, rel=1e-12)
    truly = int((played.jobs["finish_s"] > played.jobs["deadline_s"]).sum())
    assert round_figures(played).slo_violations == truly
