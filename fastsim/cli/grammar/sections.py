"""The help of ``fastsim``: verbs in sections by purpose, an example of each, and the exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Run": ("run", "resume", "fork", "sweep", "reproduce", "demo"),
    "Look": ("compare", "report", "plot", "explain", "audit", "fairness", "tenants"),
    "Data": ("import", "synth", "trace", "profile", "monitor"),
    "Decide and export": ("plan", "consolidate", "mig", "export", "serve-extender"),
    "Learn": ("guide", "list", "describe", "new-policy"),
}
"""Verbs by section."""
EXAMPLES: Mapping[str, str] = {
    "run": "--cluster openb:50 --workload 'synth:openb?pods=500' --policy fgd -o runs/fgd",
    "resume": "runs/fgd",
    "fork": "runs/fgd --at 3600 --policy pwr -o runs/pwr",
    "sweep": "sweep.toml -o runs --workers 2",
    "sweep run": "sweep.toml -o runs --workers 2",
    "sweep init": "fgd -o sweep.toml",
    "sweep stats": "runs --metric gpu_alloc_pct",
    "sweep knee": "sweep.toml --low 1 --high 8",
    "reproduce": "gavel --quick",
    "demo": "--nodes 100 --pods 700",
    "compare": "runs/best_fit runs/fgd",
    "report": "runs --html report.html",
    "plot": "jct_cdf runs/sia runs/pollux -o jct.svg",
    "explain": "runs/mix 17 --attempt first",
    "audit": "runs/mix",
    "fairness": "runs/las",
    "tenants": "runs/now",
    "import": "csv jobs.csv --map 'submit_s=start[iso],num_gpu=gpus' -o jobs.parquet",
    "import openb": "pods.csv -o pods.parquet",
    "import gavel": "jobs.trace -o jobs.parquet",
    "import gavel-rates": "throughputs.json -o rates.parquet",
    "import sia": "workload-1.csv -o jobs.parquet",
    "import pollux": "workload-1.csv -o jobs.parquet",
    "import synergy": "trace.csv -o jobs.parquet",
    "import philly": "cluster_job_log.gz -o jobs.parquet",
    "import kubernetes": "cluster.json -o pods.parquet",
    "import csv": "jobs.csv --map 'submit_s=start[iso],num_gpu=gpus' -o jobs.parquet",
    "import helios": "cluster_log.csv -o jobs.parquet",
    "import acme": "trace_seren.csv -o jobs.parquet",
    "import pai": "pai_task_table.csv -o jobs.parquet",
    "import simon": "cluster-config.yaml -s scheduler-config.yaml -o scenario.toml",
    "import swf": "log.swf.gz -o jobs.parquet",
    "import slurm": "sacct.txt -o jobs.parquet",
    "import alibaba": "trace.csv -o jobs.parquet",
    "import tiresias": "60_job.csv -o jobs.parquet",
    "import opendc": "folder -o jobs.parquet",
    "synth": "openb --pods 1000 -o pods.parquet",
    "synth openb": "--pods 1000 -o pods.parquet",
    "synth gavel": "--jobs 100 --rate-per-hour 6 -o jobs.parquet",
    "synth kubernetes": "--nodes 40 --pods 600 -o now.json",
    "synth sia": "--jobs 160 --style helios -o jobs.parquet",
    "synth synergy": "--jobs 1000 -o jobs.parquet",
    "trace": "lint pods.parquet --cluster openb",
    "trace lint": "pods.parquet --cluster openb",
    "trace stats": "pods.parquet --cluster openb -o stats.html",
    "profile": "synergy m.csv --workload lm --dataset-gb 9 --disk-mb-s 500 --samples 9000 --batch-size 32 -o a.csv",
    "profile synergy": "m.csv --workload lm --dataset-gb 9 --disk-mb-s 500 --samples 9000 --batch-size 32 -o a.csv",
    "profile gavel": "measured.csv -o rates.parquet",
    "monitor": "plot runs/mix -o readings.svg",
    "monitor serve": "runs/mix --speed 60",
    "monitor export": "runs/mix -o readings",
    "monitor import": "metrics.txt -o readings.parquet",
    "monitor plot": "runs/mix -o readings.svg",
    "monitor jobs": "readings.parquet -o pods.parquet",
    "monitor dashboard": "-o dashboard.json",
    "plan": "--cluster openb:200 --workload 'synth:openb?pods=2000' --add g2 --add 2*t4+g2",
    "consolidate": "--cluster kubernetes:now.json --node-prices 'g2=12.5&cpu=1' -o evictions.yaml",
    "mig": "--cluster kubernetes:now.json --boards 8 -o mig.yaml",
    "export": "table runs/sia jobs -o jobs.csv",
    "export kubernetes": "runs/now --nodes -o placed.yaml",
    "export sia-log": "runs/sia -o sia.log",
    "export table": "runs/sia jobs --columns native_id,jct_s -o jobs.csv",
    "serve-extender": "--snapshot http://127.0.0.1:8001 --policy fgd",
    "guide": "kubernetes",
    "list": "policies",
    "describe": "metrics --table summary energy_kwh",
    "new-policy": "mine -o my-policy",
}
"""Arguments of an example of every verb and group, by its full name."""
CODES = (
    ("0", "done"), ("1", "the run failed, or something was found"), ("2", "wrong use or input"),
    ("130", "stopped by Ctrl-C"), ("143", "stopped by SIGTERM"),
)  # fmt: skip
"""Exit codes and what they mean."""


class Sections(click.Group):
    """The group of all verbs; its help lists them by section."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list for each section, with the example of its first verb."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(200)) for name in names])
                formatter.write_text(f"Example: fastsim {names[0]} {EXAMPLES[names[0]]}")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl(CODES)


def with_examples(verbs: Iterable[click.Command], above: str = "") -> None:
    """Add the example to the help of these verbs, and of those inside groups, unless the verb has its own."""
    for verb in verbs:
        name = f"{above}{verb.name}"
        if name in EXAMPLES and not verb.epilog:
            verb.epilog = f"\b\nExample: fastsim {name} {EXAMPLES[name]}"
        if isinstance(verb, click.Group):
            with_examples(verb.commands.values(), f"{name} ")
