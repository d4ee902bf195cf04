"""The cache model by hand: epochs, storage, demands, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.cluster.server import Server
from fastsim.errors import InputError, ScenarioError
from fastsim.performance.sensitivity import attached
from fastsim.performance.synergy_profiler import Measured, modelled_profile, profile_document, write_profile

SERVER = Server(4, 16, 200, 4 * 102.4)


def measured(**options: Any) -> Measured:
    """100 GB at 102.4 MB/s, so 1,000 s from the storage alone; 100 iterations of 8, 4 and 2 s; 10 GB/s from memory."""
    data = {"dataset_gb": 100.0, "disk_mb_s": 102.4, "samples": 1600, "batch_size": 16} | options
    return Measured(np.array([2.0, 4, 8]), np.array([8.0, 4, 2]), np.array([10.0, 10, 10]), **data)


def test_an_epoch_takes_the_longer_of_computing_and_fetching() -> None:
    job = measured()
    assert job.epoch_s(2, 0) == 1000 and job.epoch_s(2, 100) == 800
    assert job.epoch_s(8, 50) == 50 / 10 + 500  # half from memory, half from the storage
    assert job.epoch_s(8, 100) == 200
    assert job.epoch_s(3, 100) == pytest.approx(100 / ((1 / 8 + 1 / 4) / 2))  # halfway between two rates


def test_the_storage_has_to_deliver_what_is_not_cached_in_the_time_left() -> None:
    job = measured()
    assert job.storage_mb_s(2, 0) == job.storage_mb_s(8, 50) == 102.4  # not enough, so all of it
    assert job.storage_mb_s(2, 50) == 50 * 1024 / (800 - 5)
    assert job.storage_mb_s(2, 100) == 0
    assert measured(dataset_gb=8000.0).storage_mb_s(2, 8000.0) == 0  # all time goes into reading memory


def test_the_document_is_the_profilers(tmp_path: Path) -> None:
    write_profile(measured(), tmp_path / "p.json")
    iteration_s, epoch_s, storage_mb_s = json.loads((tmp_path / "p.json").read_text())
    assert iteration_s == {"2": 8, "4": 4, "8": 2}
    assert epoch_s["8"]["50"] == 505 and list(epoch_s["2"]) == [str(percent) for percent in range(0, 101, 10)]
    assert storage_mb_s["2"]["0"] == 102.4
    assert json.loads(json.dumps(profile_document(measured()))) == [iteration_s, epoch_s, storage_mb_s]


def test_the_demand_is_the_least_that_is_worth_having() -> None:
    found = modelled_profile(measured(), SERVER, "net", slack=0)
    # The fair share of a GPU: 4 CPUs, 50 GB, an epoch of 505 s. The best, 200 s: 8 CPUs, and the storage keeps up
    # with a tenth of the data.
    assert (found.cpu, found.memory_gb, found.storage_mb_s) == (8, 90, 10 * 1024 / (200 - 9))
    assert found.speedup == 505 / 200 and found.iteration_s == 5.05
    assert found.grid is not None and found.grid.at(4, 50) == 1
    # Half an epoch more, 300 s: a fifth of the data may come from the storage (208 s), three tenths may not (307 s).
    assert modelled_profile(measured(), SERVER, "net", slack=0.5).memory_gb == 80
    assert attached(found, 2, SERVER).cpu == 16


def test_storage_is_reckoned_with_up_to_the_fair_share() -> None:
    shared, own = (modelled_profile(measured(), Server(4, 16, 200, mb_s), "net", slack=0) for mb_s in (204.8, 0))
    # At 51.2 MB/s a tenth of the data takes 200 s by itself.
    assert (shared.cpu, shared.memory_gb, shared.speedup) == (8, 100, (5 + 1000) / 200)
    assert (own.cpu, own.memory_gb, own.speedup) == (8, 90, 505 / 200)


def test_a_job_of_several_gpus_is_told_for_each() -> None:
    both = modelled_profile(measured(num_gpu=2, samples=3200), Server(4, 16, 200), "net", "image", slack=0)
    assert (both.task, both.cpu, both.memory_gb) == ("image", 4, 45)
    assert both.grid is not None and both.grid.cpu__c.tolist() == [1, 2, 4]
    assert both.speedup == 1  # the fair share of two GPUs, 8 CPUs and all the data, is no faster


@given(st.floats(1, 500), st.floats(10, 5000), st.floats(0, 0.5), st.sampled_from([1, 2, 4]))
def test_a_demand_is_never_slower_than_the_fair_share(gb: float, disk: float, slack: float, gpus: int) -> None:
    job = measured(dataset_gb=gb, disk_mb_s=disk, num_gpu=gpus)
    found = modelled_profile(job, Server(4, 8, 100), "net", slack=slack)
    assert found.speedup >= 1 and found.grid is not None
    best = float(found.grid.speedup__cm.max())
    assert found.speedup >= min(best / (1 + slack), best) * (1 - 1e-12)  # one division more
    assert (np.diff(found.grid.speedup__cm, axis=0) >= 0).all()  # CPUs never hurt


def test_wrong_measurements_are_one_clear_error(tmp_path: Path) -> None:
    path, data = tmp_path / "m.csv", {"dataset_gb": 1, "disk_mb_s": 1, "samples": 1, "batch_size": 1}
    for text, message in (
        ("", "no measurements"),
        ("1,0,3\n", r"m.csv:2: iteration_s: found 0.0, expected a number above 0"),
        ("1,2,3\n1,3,3\n", "cpus: found 1 twice"),
        ("1,2\n", "expected 3 fields"),
    ):
        path.write_text("cpus,iteration_s,memory_gb_s\n" + text)
        with pytest.raises(InputError, match=message):
            Measured.from_csv(path, **data)
    with pytest.raises(ScenarioError, match="disk_mb_s: found 0"):
        measured(disk_mb_s=0)
    with pytest.raises(ScenarioError, match="slack: found 1"):
        modelled_profile(measured(), SERVER, "net", slack=1)
    with pytest.raises(InputError, match=r"CPUs: found 12, expected 2 to 8, as measured"):
        modelled_profile(measured(), Server(1, 12, 200), "net")
