"""The command of figure 8: the jobs that its runs measure are among those of their workloads."""

from __future__ import annotations

from bench.gavel_figures import Point, scenario
from fastsim.scenario.round_texts import refuse_beyond, window_from
from fastsim.scenario.run_inputs import workload_from


def test_the_jobs_that_are_measured_are_generated() -> None:
    made = scenario(Point("fifo", 2.0, 0), "default", False)
    refuse_beyond(window_from(made.window), workload_from(made.workload).workload)
