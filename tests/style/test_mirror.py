"""Every module has the test file that its path promises: ``fastsim/a/b.py`` has ``tests/unit/a/test_b.py``."""

from __future__ import annotations

from pathlib import Path

from tests.style.tree import ROOT, short, sources

UNIT = "tests/unit"
SHARED = {
    "fastsim/__init__.py": f"{UNIT}/test_public_names.py",  # what the package exports
    "fastsim/policies/__init__.py": f"{UNIT}/policies/test_registry.py",  # hands out what the registry knows
    "fastsim/policies/programs/finish_time.py": f"{UNIT}/policies/shares/test_finish_time_fairness.py",
    "fastsim/policies/programs/max_sum.py": f"{UNIT}/policies/shares/test_max_sum_throughput.py",
    "fastsim/policies/programs/min_duration.py": f"{UNIT}/policies/shares/test_min_total_duration.py",
    "fastsim/policies/programs/geometric_mean.py": f"{UNIT}/policies/shares/test_strategy_proof.py",
    # a policy and its program are one
    "fastsim/policies/programs/objectives.py": f"{UNIT}/policies/shares/test_max_min_fairness.py",
    # A policy for jobs says what rounds it asks for; what it does in them stands in ``shares``.
    "fastsim/policies/shares/allox.py": f"{UNIT}/policies/shares/test_round_policies.py",
    "fastsim/policies/shares/fifo.py": f"{UNIT}/policies/shares/test_round_policies.py",
    "fastsim/policies/shares/gandiva.py": f"{UNIT}/policies/shares/test_round_policies.py",
    "fastsim/policies/shares/isolated.py": f"{UNIT}/policies/shares/test_round_policies.py",
    "fastsim/policies/shares/proportional.py": f"{UNIT}/policies/shares/test_round_policies.py",
    "fastsim/policies/programs/water_filling.py": f"{UNIT}/policies/shares/test_water_filling.py",
    # The parts of the compiled rounds are only reached through the whole.
    "fastsim_ext/rounds/candidates.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/completion_order.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/job_table.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/leases.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/round_log.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/candidate_heap.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/share_loop.pyx": f"{UNIT}/engine/shares/test_run.py",
    "fastsim_ext/rounds/cluster_metrics.pyx": f"{UNIT}/engine/rounds/test_node_metrics.py",
    # fills the columns of fastsim/engine/online/outcome_columns.py
    "fastsim_ext/state/outcome_columns.pyx": f"{UNIT}/engine/online/test_outcome_columns.py",
    # the face of fastsim_ext/adaptive/goodput.pyx
    "fastsim/performance/goodput.py": f"{UNIT}/ext/adaptive/test_goodput.py",
    "fastsim_ext/adaptive/step_time_fit.pyx": f"{UNIT}/performance/test_step_time_fit.py",  # loss and slopes of the fit
    # reached through the search, like the next
    "fastsim_ext/solvers/lbfgsb_curvature.pyx": f"{UNIT}/ext/solvers/test_lbfgsb.py",
    "fastsim_ext/solvers/lbfgsb_subspace.pyx": f"{UNIT}/ext/solvers/test_lbfgsb.py",
    # lends what fastsim_ext/select/state_memo.pyx makes
    "fastsim/engine/online/memo_pool.py": f"{UNIT}/ext/select/test_state_memo.py",
    "fastsim/__main__.py": "tests/cli/test_interrupt.py",
    "fastsim/cli/main.py": "tests/cli/test_verbs.py",  # the command line is tested as a whole
    "fastsim/cli/audit.py": f"{UNIT}/engine/audit/test_audit.py",
    # the parts of an audit are tested by what it finds
    "fastsim/engine/audit/inputs.py": f"{UNIT}/engine/audit/test_audit.py",
    "fastsim/engine/audit/jobs.py": f"{UNIT}/engine/audit/test_audit.py",
    "fastsim/engine/audit/nodes.py": f"{UNIT}/engine/audit/test_audit.py",
    "fastsim/engine/audit/summary.py": f"{UNIT}/engine/audit/test_audit.py",
    "fastsim/engine/audit/timeline.py": f"{UNIT}/engine/audit/test_audit.py",
    "fastsim/cli/data.py": "tests/cli/test_verbs.py",
    "fastsim/cli/explain.py": "tests/cli/test_explain.py",
    "fastsim/cli/export.py": f"{UNIT}/reports/test_kubernetes_export.py",
    "fastsim/cli/kubernetes.py": "tests/cli/test_extender.py",
    "fastsim/cli/list.py": "tests/cli/test_verbs.py",
    "fastsim/cli/monitor.py": "tests/cli/test_monitor.py",
    "fastsim/cli/plan.py": "tests/cli/test_plan.py",
    "fastsim/cli/plot.py": "tests/cli/test_plot.py",
    "fastsim/cli/report.py": "tests/cli/test_report.py",
    "fastsim_ext/online/stepped_loop.pyx": f"{UNIT}/decisions/test_rl_environment.py",  # reached through environments
    "fastsim/reports/vega.py": f"{UNIT}/reports/test_report_charts.py",  # what the figures look like
    "fastsim/cli/profile.py": "tests/cli/test_profile.py",
    "fastsim/cli/reproduce.py": "tests/cli/test_reproduce.py",
    # the figures of its cells
    "fastsim/experiments/reproduce/placement_figures.py": f"{UNIT}/experiments/reproduce/test_fgd_pwr.py",
    "fastsim/experiments/reproduce/papers.py": "tests/cli/test_reproduce.py",
    "fastsim/cli/run.py": "tests/cli/test_verbs.py",
    "fastsim/cli/experiments.py": "tests/cli/test_sweep.py",
    "fastsim/cli/statistics.py": "tests/cli/test_sweep.py",
    "fastsim/cli/trace.py": "tests/cli/test_trace.py",
    "fastsim/engine/rounds/job_checks.py": f"{UNIT}/engine/shares/test_run.py",  # refusals, as a run tells them
    "fastsim/engine/rounds/records.py": "tests/differential/test_rounds.py",  # what the compiled rounds hand out
    "fastsim/engine/rounds/ordered_records.py": "tests/differential/test_turns.py",
    # the twin of the compiled ordered rounds
    "fastsim_ext/rounds/ordered_jobs.pyx": "tests/differential/test_turns.py",
    "fastsim_ext/rounds/server_allocation.pyx": "tests/differential/test_turns.py",
    "fastsim_ext/rounds/resource_shares.pyx": "tests/differential/test_turns.py",
    "fastsim_ext/rounds/ordered_loop.pyx": "tests/differential/test_turns.py",
    "fastsim_ext/rounds/ordered_snapshot.pyx": "tests/differential/test_turn_checkpoint.py",
    "fastsim_ext/rounds/snapshot.pyx": "tests/differential/test_round_checkpoint.py",
    # reached through a run, like the compiled parts
    "fastsim/engine/adaptive/ground_truth.py": f"{UNIT}/engine/adaptive/test_run.py",
    "fastsim/engine/adaptive/plan.py": f"{UNIT}/engine/adaptive/test_run.py",
    "fastsim/engine/adaptive/records.py": f"{UNIT}/engine/adaptive/test_run.py",
    "fastsim/engine/adaptive/checkpoint.py": "tests/differential/test_adaptive_checkpoint.py",
    "fastsim_ext/adaptive/snapshot.pyx": "tests/differential/test_adaptive_checkpoint.py",
    "fastsim_ext/adaptive/loop.pyx": f"{UNIT}/engine/adaptive/test_run.py",
    # A run with telemetry is compared with its twin as a whole.
    "fastsim/engine/telemetry_sampler.py": "tests/differential/test_telemetry.py",
    "fastsim/engine/online/telemetry_hook.py": "tests/differential/test_telemetry.py",
    "fastsim/engine/pod_profiles.py": "tests/differential/test_telemetry.py",
    "fastsim/simulation/placement_telemetry.py": "tests/differential/test_telemetry.py",
    "fastsim_ext/state/gpu_readings.pyx": "tests/differential/test_telemetry.py",
    "fastsim/engine/monitored/plan.py": f"{UNIT}/engine/monitored/test_containers.py",
    "fastsim/engine/monitored/run.py": f"{UNIT}/simulation/test_monitored.py",
    "fastsim/engine/monitored/tables.py": f"{UNIT}/simulation/test_monitored.py",
    "fastsim/policies/monitored/policy_text.py": f"{UNIT}/policies/monitored/test_exclusive_and_gpushare.py",
    "fastsim/engine/online/user_scorers.py": f"{UNIT}/policies/online/test_python_scorer.py",
    "fastsim/simulation/scenario_checks.py": f"{UNIT}/scenario/test_scenario.py",
    # a policy and its decisions are one
    "fastsim/policies/adaptive/sia.py": f"{UNIT}/policies/deciders/test_sia_decider.py",
    "fastsim/policies/adaptive/pollux.py": f"{UNIT}/policies/deciders/test_pollux_decider.py",
    # the twin of the compiled search
    "fastsim/policies/adaptive/rotation.py": f"{UNIT}/policies/deciders/test_rotation_decider.py",
    "fastsim/policies/adaptive/optimus.py": f"{UNIT}/policies/deciders/test_optimus_decider.py",
    "fastsim/policies/deciders/fixed_size_decider.py": f"{UNIT}/policies/deciders/test_rotation_decider.py",
    "fastsim/policies/adaptive/served.py": f"{UNIT}/policies/deciders/test_served_decider.py",
    "fastsim/policies/adaptive/planned.py": f"{UNIT}/policies/deciders/test_planned_decider.py",
    "fastsim_ext/adaptive/ground_truth.pyx": "tests/differential/test_adaptive.py",
    "fastsim_ext/adaptive/learned_performance.pyx": "tests/differential/test_adaptive.py",
    "fastsim_ext/adaptive/training_job.pyx": "tests/differential/test_adaptive.py",
    # The parts of the twin say what a number is by hand; the kernels say the same, in every situation.
    "fastsim_ext/online/backfill.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/online/node_constraints.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/online/earliest_fit.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/online/free_forecast.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/online/preempt.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/online/rules_loop.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/state/pod_membership.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/state/tenant_usage.pyx": "tests/differential/test_textbook.py",
    "fastsim_ext/online/queue_loop.pyx": "tests/differential/test_textbook.py",
    # The compiled programs are compared with the ones in numpy.
    "fastsim_ext/solvers/dense.pyx": f"{UNIT}/policies/programs/test_interior_paired.py",
    "fastsim_ext/solvers/self_dual_embedding.pyx": f"{UNIT}/policies/solvers/test_interior_point.py",
    "fastsim_ext/solvers/interior_unpaired.pyx": f"{UNIT}/policies/programs/test_interior_unpaired.py",
    "fastsim_ext/solvers/interior_paired.pyx": f"{UNIT}/policies/programs/test_interior_paired.py",
    "fastsim_ext/adaptive/goodput_table.pyx": f"{UNIT}/policies/deciders/test_goodput_table.py",
    "fastsim_ext/scores/device.pyx": "tests/differential/test_scores.py",
    "fastsim_ext/scores/dot.pyx": "tests/differential/test_scores.py",
    "fastsim_ext/draw.pyx": "tests/differential/test_online.py",
    "fastsim_ext/scores/frag.pyx": "tests/differential/test_scores.py",
    "fastsim_ext/select/byte_thresholds.pyx": f"{UNIT}/ext/select/test_byte_columns.py",
    # what a column says of a node that does not fit
    "fastsim_ext/select/class_demands.pyx": f"{UNIT}/ext/select/test_score_columns.py",
    "fastsim_ext/scores/pack.pyx": "tests/differential/test_scores.py",
    "fastsim_ext/scores/power.pyx": "tests/differential/test_scores.py",
    "fastsim_ext/scores/frag_sums.pyx": f"{UNIT}/ext/scores/test_frag_grouped.py",
}
"""Modules tested under another name, and why."""
NOTHING = {
    "fastsim/cli/__init__.py",
    "fastsim/cluster/__init__.py",
    "fastsim/decisions/__init__.py",
    "fastsim/engine/__init__.py",
    "fastsim/engine/adaptive/__init__.py",
    "fastsim/engine/audit/__init__.py",
    "fastsim/engine/monitored/__init__.py",
    "fastsim/engine/online/__init__.py",
    "fastsim/engine/orders/__init__.py",
    "fastsim/engine/rounds/__init__.py",
    "fastsim/engine/shares/__init__.py",
    "fastsim/engine/totals/__init__.py",
    "fastsim/experiments/__init__.py",
    "fastsim/experiments/executors/__init__.py",
    "fastsim/experiments/reproduce/__init__.py",
    "fastsim/experiments/sweep/__init__.py",
    "fastsim/foundation/__init__.py",
    "fastsim/hardware/__init__.py",
    "fastsim/kubernetes/__init__.py",
    "fastsim/kubernetes/devices/__init__.py",
    "fastsim/kubernetes/pod_rules/__init__.py",
    "fastsim/performance/__init__.py",
    "fastsim/performance/applications/__init__.py",
    "fastsim/policies/adaptive/__init__.py",
    "fastsim/policies/allocators/__init__.py",
    "fastsim/policies/deciders/__init__.py",
    "fastsim/policies/monitored/__init__.py",
    "fastsim/policies/online/__init__.py",
    "fastsim/policies/programs/__init__.py",
    "fastsim/policies/shares/__init__.py",
    "fastsim/policies/solvers/__init__.py",
    "fastsim/reports/__init__.py",
    "fastsim/reports/charts/__init__.py",
    "fastsim/scenario/__init__.py",
    "fastsim/simulation/__init__.py",
    "fastsim/telemetry/__init__.py",
    "fastsim/workload/__init__.py",
    "fastsim/workload/generators/__init__.py",
    "fastsim/workload/importers/__init__.py",
    "fastsim_ext/__init__.py",
    "fastsim_ext/adaptive/__init__.py",
    "fastsim_ext/online/__init__.py",
    "fastsim_ext/rounds/__init__.py",
    "fastsim_ext/scores/__init__.py",
    "fastsim_ext/select/__init__.py",
    "fastsim_ext/solvers/__init__.py",
    "fastsim_ext/state/__init__.py",
}
"""Packages that only hold modules."""


def modules() -> list[Path]:
    """Every source file that does something, Python or compiled."""
    found = sources("fastsim", "fastsim_ext", suffix=".py") + sources("fastsim_ext", suffix=".pyx")
    return [path for path in found if short(path) not in NOTHING]


def promised(name: str) -> str:
    """The test file that the path of a module promises: those of the compiled package stand below ``ext``."""
    package, *folders, file = Path(name).parts
    below = ["ext", *folders] if package == "fastsim_ext" else folders
    return "/".join([UNIT, *below, f"test_{Path(file).stem}.py"])


def mirror(path: Path) -> str:
    """The test file of a module."""
    return SHARED.get(short(path), promised(short(path)))


def test_every_module_has_its_test_file() -> None:
    findings = [f"{short(path)}: no {mirror(path)}" for path in modules() if not (ROOT / mirror(path)).is_file()]
    assert findings == []


def test_no_two_modules_claim_one_file() -> None:
    own = [mirror(path) for path in modules() if short(path) not in SHARED]
    assert sorted(name for name in set(own) if own.count(name) > 1) == []


def test_the_tables_name_files_that_exist_and_need_to_share() -> None:
    listed = {*SHARED, *NOTHING}
    assert sorted(name for name in listed if not (ROOT / name).is_file()) == []
    own = {name: promised(name) for name in SHARED}
    assert sorted(name for name in SHARED if own[name] != SHARED[name] and (ROOT / own[name]).is_file()) == []
    # What a package without a test file holds is a docstring and what it passes on.
    long = [name for name in NOTHING if len((ROOT / name).read_text(encoding="utf-8").splitlines()) > 7]
    assert long == []
