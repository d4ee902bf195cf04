"""The names under which Gavel's own command line knows its policies, and ours for them."""

from __future__ import annotations

ORIGINAL_NAMES = {
    "allox": "allox(allox_compat=True)",
    "fifo": "fifo(mode=base, fifo_compat=True)",
    "fifo_perf": "fifo(mode=perf)",
    "fifo_packed": "fifo(mode=packed)",
    "finish_time_fairness": "finish_time_fairness(mode=base)",
    "finish_time_fairness_perf": "finish_time_fairness(mode=perf)",
    "finish_time_fairness_packed": "finish_time_fairness(mode=packed)",
    "gandiva": "gandiva",
    "isolated": "isolated",
    "isolated_plus": "isolated(per_gpu=False)",
    "max_min_fairness": "max_min_fairness(mode=base)",
    "max_min_fairness_perf": "max_min_fairness(mode=perf)",
    "max_min_fairness_packed": "max_min_fairness(mode=packed)",
    "max_min_fairness_water_filling": "max_min_fairness_water_filling(mode=base)",
    "max_min_fairness_water_filling_perf": "max_min_fairness_water_filling(mode=perf)",
    "max_min_fairness_water_filling_packed": "max_min_fairness_water_filling(mode=packed)",
    "max_sum_throughput_perf": "max_sum_throughput",
    "max_sum_throughput_normalized_by_cost_perf": "max_sum_throughput(per_cost=True)",
    "max_sum_throughput_normalized_by_cost_perf_SLOs": "max_sum_throughput(per_cost=True, deadlines=True)",
    "max_sum_throughput_normalized_by_cost_packed_SLOs":
        "max_sum_throughput(mode=packed, per_cost=True, deadlines=True)",
    "min_total_duration": "min_total_duration(mode=base, search=bisection)",
    "min_total_duration_perf": "min_total_duration(mode=perf, search=bisection)",
    "min_total_duration_packed": "min_total_duration(mode=packed, search=bisection)",
    "proportional": "proportional",
}  # fmt: skip
"""Gavel's name -> ours as a text, with the parameters that make it the same policy."""
