"""Generated job lists: a style's applications, tuned sizes, and the same jobs from the same seed."""

from __future__ import annotations

import polars as pl
import pytest

from fastsim.errors import ScenarioError
from fastsim.performance.applications.application import tuned_configs
from fastsim.performance.applications.family import Applications
from fastsim.workload import Workload
from fastsim.workload.generators.sia import STYLES


def rows(**options: object) -> pl.DataFrame:
    """A generated list."""
    found = pl.from_arrow(Workload.synth("sia", **options).table())
    assert isinstance(found, pl.DataFrame)
    return found


@pytest.mark.parametrize("style", sorted(STYLES))
def test_a_style_has_its_applications_and_rate(style: str) -> None:
    assert sum(STYLES[style].share.values()) == pytest.approx(1.0)
    found = rows(jobs=4000, seed=1, style=style)
    counts = dict(found.group_by("workload").len().iter_rows())
    for name, share in STYLES[style].share.items():
        assert counts[name] / 4000 == pytest.approx(share, abs=0.03)
    hours = found["submit_s"].to_numpy().max() / 3600
    assert 4000 / hours == pytest.approx(20, rel=0.2)


def test_sizes_are_tuned_ones() -> None:
    app = Applications.default()["cifar10"]
    known = {config[1:] for config in tuned_configs(app, "rtx", 8, 18)}
    found = rows(jobs=500, seed=3).filter(pl.col("workload") == "cifar10")
    assert set(found.select("num_gpu", "batch_size").iter_rows()) == known
    plain = rows(jobs=500, seed=3, tuned=False).filter(pl.col("workload") == "cifar10")
    assert set(plain.select("num_gpu", "batch_size").iter_rows()) == {(1, app.init_batch)}


def test_the_same_seed_makes_the_same_jobs_and_a_longer_list_begins_alike() -> None:
    assert rows(jobs=50, seed=1).equals(rows(jobs=50, seed=1))
    assert rows(jobs=80, seed=1)[:50].equals(rows(jobs=50, seed=1))
    assert not rows(jobs=50, seed=1).equals(rows(jobs=50, seed=2))


def test_copies_come_together() -> None:
    one, three = rows(jobs=10, seed=1), rows(jobs=30, seed=1, copies=3)
    same = ["submit_s", "workload", "num_gpu", "batch_size"]
    assert three.select(same)[::3].equals(one.select(same)) and three.select(same)[2::3].equals(one.select(same))
    assert three["native_id"].n_unique() == 30


def test_parts_of_the_jobs_are_fixed() -> None:
    counts = dict(rows(jobs=2000, rigid_share=0.25, fixed_batch_share=0.5).group_by("task_role").len().iter_rows())
    assert counts["rigid"] / 2000 == pytest.approx(0.25, abs=0.04)
    assert counts["scale-gpus"] / 2000 == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": -1},
        {"style": "none"},
        {"rate_per_hour": 0.0},
        {"copies": 0},
        {"rigid_share": 0.6, "fixed_batch_share": 0.6},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ScenarioError, match=f"synth.{next(iter(wrong))}"):
        Workload.synth("sia", **wrong)
