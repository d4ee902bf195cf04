"""The recorded applications of the Sia simulator: constants, step times, training curves and tuned sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.performance.applications.application import tuned_configs
from tests.golden.sia.sia import golden_applications, recorded


def test_constants(shared: Callable[[str], Path]) -> None:
    for row in recorded(shared("golden/sia/functions") / "app_constants.csv").iter_rows(named=True):
        app = golden_applications()[row["app"]]
        times = app.on(row["gpu_type"])
        found = [app.init_batch, app.max_batch, times.low, times.high, app.curve.epochs, app.restart_s]
        names = ("init_batch_size", "max_batch_size", "min_local_bsz", "max_local_bsz", "max_epochs", "rescale_time")
        assert found == [row[name] for name in names], row
        assert app.curve.batches == tuple(map(int, row["validated_bsz"].split()))


def test_step_times(shared: Callable[[str], Path]) -> None:
    rows = recorded(shared("golden/sia/functions") / "app_throughput.csv")
    outside = 0
    for row in rows.iter_rows(named=True):
        times = golden_applications()[row["app"]].on(row["gpu_type"])
        placement = [int(gpus) for gpus in row["placement"].split("-")]
        if row["error"] or row["step_time"] < 0:  # the original stops, or answers -1 for both
            with pytest.raises(InputError):
                times.seconds(placement, row["local_bsz"])
            outside += 1
        else:
            # Equal to the last bit with the SciPy of today; the recordings' own bar is 1e-9.
            assert times.seconds(placement, row["local_bsz"]) == pytest.approx(
                (row["step_time"], row["sync_time"]), rel=1e-9
            )
        if not row["error"]:
            assert times.largest(placement) == row["max_local_bsz"]
    assert 0 < outside < len(rows) / 4


def test_training_curves(shared: Callable[[str], Path]) -> None:
    for row in recorded(shared("golden/sia/functions") / "app_validation.csv").iter_rows(named=True):
        curve, batch, epoch = golden_applications()[row["app"]].curve, row["batch_size"], row["epoch"]
        assert curve.gradients(batch, epoch) == pytest.approx((row["grad_sqr"], row["grad_var"]), rel=1e-12)
        assert curve.iteration(batch, epoch) == pytest.approx(row["iteration"], rel=1e-12)
        assert curve.progress(epoch) == pytest.approx(row["progress_at_epoch"], rel=1e-12)
        assert curve.progress(epoch + 1) == pytest.approx(row["progress_next"], rel=1e-12)
        assert curve.iteration_at(batch, epoch, row["cur_progress"]) == row["cur_iteration"]
        assert curve.epoch_of(row["cur_progress"]) == row["epoch_of_progress"]
        assert curve.epochs - 1 == row["completion_epoch"]
        best = curve.best_metric(batch, epoch)
        assert best == (None if row["best_metric"] is None else pytest.approx(row["best_metric"], rel=1e-12))


def test_tuned_configurations(shared: Callable[[str], Path]) -> None:
    rows = recorded(shared("golden/sia/functions") / "tuned_configs.csv")
    keys = ["gpu_type", "app", "ngpus_per_node", "max_gpus"]
    for (gpu_type, app, per_node, most), part in rows.group_by(keys, maintain_order=True):
        found = tuned_configs(golden_applications()[app], gpu_type, per_node, most)
        assert [c[1:] for c in found] == list(part.select("num_replicas", "batch_size").iter_rows())
        assert [c.jct_s for c in found] == pytest.approx(part["jct"].to_list(), rel=1e-9)


def test_ratios_of_one_gpu(shared: Callable[[str], Path]) -> None:
    content = json.loads((shared("golden/sia/functions") / "bootstrap_ratios.json").read_text())
    for name, models in content["min_gpu_throughputs"].items():
        app = golden_applications()[name]
        for model, rate in models.items():
            assert app.on(model).one_gpu_rate == pytest.approx(rate, rel=1e-12)
            for other, ratio in content["throughput_ratios"][name][model].items():
                assert app.rate_ratio(model, other) == pytest.approx(ratio, rel=1e-12)
