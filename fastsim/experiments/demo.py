"""The demo: the published placement policies on an openb-like cluster, under the FGD paper's protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fastsim.foundation.csv_table import without_formulas
from fastsim.foundation.folder_lock import held
from fastsim.foundation.parquet import replacing_folder
from fastsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from fastsim.reports.comparison import Comparison

POLICIES = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd", "pwr", "0.9*fgd + 0.1*pwr")
NODES, PODS = 1213, 8152
"""Size of the openb cluster and of its pod list."""
RATIO = 1.3
"""GPU demand offered, relative to the cluster's GPUs."""


def runs() -> int:
    """Number of runs of the demo."""
    return len(POLICIES)


def scenarios(nodes: int = NODES, pods: int = PODS, seed: int = 42) -> list[Scenario]:
    """One scenario for each policy: the same cluster, and the same pods tuned to 1.3 times its GPUs."""
    # The protocol breaks ties in a random order of the nodes, so nodes are shuffled and not sorted by type.
    cluster = f"openb:{nodes}?seed={seed}"
    workload = f"synth:openb?pods={pods}&seed={seed}&tune={RATIO}&tune_seed={seed}"
    return [Scenario(cluster, workload, policy, seed=seed, record="timeline", name=policy) for policy in POLICIES]


def policy_comparison(
    nodes: int = NODES, pods: int = PODS, seed: int = 42, workers: int = 2,
    progress: Callable[[int], None] | None = None,
) -> Comparison:  # fmt: skip
    """Run every policy and compare them."""
    from fastsim.experiments.many_runs import simulate_many
    from fastsim.reports.comparison import compare

    return compare(simulate_many(scenarios(nodes, pods, seed), workers, progress))


def write_folder(comparison: Comparison, folder: Path) -> Path:
    """Write report, picture and every run to a folder, which appears complete or not at all.

    The report is Markdown, without a picture, where the report extra is not installed or has too little room.
    """
    from fastsim.reports.charts.chart_files import drawable

    with held(folder, overwrite=True), replacing_folder(folder) as partial:
        for name, result in zip(comparison.names, comparison.results, strict=True):
            result.save(partial / "runs" / name.replace("*", "").replace(" ", ""))
        without_formulas(comparison.table).write_csv(partial / "table.csv")
        if drawable():
            comparison.to_html(partial / "report.html")
            comparison.to_png(partial / "report.png")
        else:
            comparison.to_markdown(partial / "report.md")
    return folder
